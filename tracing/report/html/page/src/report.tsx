// A report: reads the index, then shows the view that the address names.
import { render } from "preact"
import { useEffect, useLayoutEffect, useRef } from "preact/hooks"
import { AnswersView } from "./answers"
import { type Index, readIndex } from "./data"
import { DivergencesView } from "./divergences"
import { followLinks } from "./editor"
import { KernelView } from "./kernel"
import { KernelsView } from "./kernels"
import { LaunchesView } from "./launches"
import { served, useLive } from "./live"
import { Overview } from "./overview"
import { Theme } from "./parts"
import { type Route, addressed, goTo, hrefOf, useRoute } from "./route"
import { RunView } from "./run"

const VIEWS = ["overview", "divergences", "launches", "kernels", "answers", "environment"]

function Report({ index }: { index: Index }) {
  const route = useRoute(index.runs.length)
  const main = useRef<HTMLElement>(null)
  const views = viewsOf(index)
  const current = route.view === "kernel" ? "kernels" : route.view
  useLayoutEffect(() => {
    // 1, 2, ... open the views, unless a person is typing; from the first view that is seen
    const typed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, .cm-editor")) return
      const shown = addressed(index.runs.length)
      const view = views[Number(event.key) - 1]
      if (view) goTo(hrefOf(opensOn(index, shown.run, view), view))
      if (event.key === "x" && index.runs.length === 2) goTo(hrefOf(1 - shown.run, shown.view, ...switched(shown)))
    }
    addEventListener("keydown", typed)
    return () => removeEventListener("keydown", typed)
  }, [index])
  useEffect(() => { document.querySelector(".rows")?.scrollIntoView({ block: "nearest" }) }, [route.view])
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current!.focus() }}>Skip to the content</a>
      <header>
        <h1>{index.runs.map((run) => run.name).join(" | ")}</h1>
        <nav aria-label="Views">
          {views.map((one, n) => (
            <a key={one} href={hrefOf(opensOn(index, route.run, one), one)} aria-current={one === current ? "page" : undefined} title={`Key ${n + 1}`}>
              {one}{one === "divergences" ? ` (${index.comparison!.found})` : ""}
            </a>
          ))}
        </nav>
        {index.runs.length === 2 && <Sides index={index} route={route} />}
        {served && <Recording />}
        <Theme />
      </header>
      <main id="main" tabIndex={-1} ref={main}>{viewOf(index, route)}</main>
    </>
  )
}

/** The views that there is something to see in. */
function viewsOf(index: Index): string[] {
  if (index.table) return ["overview"]
  const answered = index.runs.some((run) => run.answers.length > 0)
  return VIEWS.filter((one) => (one !== "divergences" || index.comparison) && (one !== "answers" || answered))
}

/** The run that a view opens on: the shown one, unless only the other one has something to see there. */
function opensOn(index: Index, shown: number, view: string): number {
  const filled = index.runs.findIndex((one) => sizeOf(one, view) > 0)
  return filled < 0 || sizeOf(index.runs[shown]!, view) > 0 ? shown : filled
}

function sizeOf(run: Index["runs"][number], view: string): number {
  switch (view) {
    case "launches": return run.launches.count
    case "kernels": return run.kernels.length
    case "answers": return run.answers.length
    default: return 1
  }
}

function Recording() {
  const live = useLive(show)
  const said = live.failed || (live.recording ? "recording" : "recorded") + (live.updated ? `, updated ${live.updated.toLocaleTimeString()}` : "")
  return <span class={`live ${live.failed ? "failed" : live.recording ? "growing" : ""}`}><span role="status">{said}</span> <a href="./">all runs</a></span>
}

function viewOf(index: Index, route: Route) {
  if (index.table) return <Overview index={index} />
  switch (route.view) {
    case "launches": return <LaunchesView index={index} route={route} />
    case "kernels": return <KernelsView index={index} route={route} />
    case "kernel": return <KernelView key={`${route.run} ${route.words[0]}`} index={index} route={route} />
    case "answers": return <AnswersView index={index} route={route} />
    case "environment": return <RunView index={index} run={route.run} />
    case "divergences": return index.comparison ? <DivergencesView index={index} route={route} /> : <Overview index={index} />
    default: return <Overview index={index} />
  }
}

/** What of the address holds in the other run, too: numbers of launches and kernels do not. */
function switched(route: Route): string[] {
  return route.view === "divergences" || route.view === "launches" ? route.words : []
}

function Sides({ index, route }: { index: Index; route: Route }) {
  const view = route.view === "kernel" ? "kernels" : route.view
  return (
    <div class="sides" role="group" aria-label="Run that is shown">
      {index.runs.map((run, n) => (
        <a key={n} href={hrefOf(n, view, ...switched(route))} aria-current={n === route.run ? "true" : undefined} title="Key x">
          {"ab"[n]}: {run.name}
        </a>
      ))}
    </div>
  )
}

const app = document.getElementById("app")!

/** Reads the index, and shows the report, or what is new in it. */
async function show() {
  const index = await readIndex()
  render(<Report index={index} />, app)
}

followLinks()
const starting = app.firstElementChild
readIndex().then(
  (index) => {
    starting?.remove()
    render(<Report index={index} />, app)
    performance.mark("report")
  },
  (error) => { app.textContent = `This browser cannot read the report: ${error.message ?? error}` },
)
