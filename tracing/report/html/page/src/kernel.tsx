// One kernel: its code stage by stage with linked lines, and its passes.
import { useEffect, useMemo, useState } from "preact/hooks"
import { Code } from "./code"
import type { Index, KernelContent, KernelRow, Stage } from "./data"
import { reveal } from "./editor"
import { linksOf } from "./links"
import { Commands, Facts, Marks, Waiting, editorHref, lasts, micros, plural, useChunk } from "./parts"
import { PassesOf } from "./passes"
import { type Route, hrefOf } from "./route"

const TITLES: Record<string, string> = {
  python: "Python", ttir: "TTIR", ttgir: "TTGIR", llir: "LLVM IR", ptx: "PTX", amdgcn: "AMDGCN", sass: "SASS",
}

export function KernelView({ index, route }: { index: Index; route: Route }) {
  const run = index.runs[route.run]!
  const kernel = run.kernels[Number(route.words[0])]
  const { value: content, failed } = useChunk<KernelContent>(kernel?.chunk)
  if (!kernel) return <p>There is no such kernel.</p>
  const tab = route.words[1] === "passes" ? "passes" : "code"
  const to = (view: string) => hrefOf(route.run, "kernel", route.words[0]!, view)
  return (
    <div class="kernel">
      <h2>{kernel.label} <Marks flags={kernel.flags} /></h2>
      <p class="summary">
        {kernel.target} · {plural(Number(kernel.num_warps), "warp")} · {plural(Number(kernel.num_stages), "stage")} · {plural(kernel.launches, "launch")}
        {kernel.device_us > 0 && <> · {micros(kernel.device_us)} on the device</>} · {kernel.changed} of {kernel.passes} passes changed the IR
        <Others index={index} route={route} kernel={kernel} />
      </p>
      <nav class="tabs" aria-label="Views of the kernel">
        <a href={to("code")} aria-current={tab === "code" ? "page" : undefined}>Code</a>
        <a href={to("passes")} aria-current={tab === "passes" ? "page" : undefined}>Passes</a>
      </nav>
      {content?.note && <p class="failed">{content.note}</p>}
      {!content ? <Waiting failed={failed} /> : tab === "code"
        ? <Stages content={content} />
        : !content.note && <PassesOf index={index} route={route} kernel={kernel} passes={content.passes} />}
      <Commands list={kernel.next} />
      <details>
        <summary>Constants, file and hash</summary>
        <Facts rows={[["hash", kernel.hash], ["file", kernel.file], ...Object.entries(kernel.constants)]} />
      </details>
    </div>
  )
}

/** A link to the same kernel of the other run. */
function Others({ index, route, kernel }: { index: Index; route: Route; kernel: KernelRow }) {
  const pair = index.comparison?.kernels.find((one) => (route.run === 0 ? one.a : one.b) === kernel.hash)
  if (!pair) return null
  const other = 1 - route.run
  const at = index.runs[other]!.kernels.findIndex((one) => one.hash === (other === 0 ? pair.a : pair.b))
  if (at < 0) return null
  return <> · <a href={hrefOf(other, "kernel", at, ...route.words.slice(1))}>in {"ab"[other]}: {pair.equal ? "equal" : pair.known ? "differs" : "not compared"}</a></>
}

function Stages({ content }: { content: KernelContent }) {
  const links = useMemo(() => linksOf(content), [content])
  const names = content.stages.map((one) => one.stage)
  const [open, change] = useState(() => ["python", "ttgir", "ptx", "amdgcn"].filter((one) => names.includes(one)))
  const [chosen, choose] = useState<{ stage: string; line: number } | null>(null)
  useEffect(() => choose(null), [content])
  const linked = useMemo(
    () => (chosen ? links.linked(chosen.stage, chosen.line) : new Map<string, number[]>()),
    [chosen, links],
  )
  const shown = content.stages.filter((one) => open.includes(one.stage))
  const pick = (one: Stage, line: number) => {
    choose({ stage: one.stage, line })
    if (one.file && lasts(one.file)) reveal(one.file, line + one.first - 1, false)
  }
  const toggle = (name: string) => change(open.includes(name) ? open.filter((one) => one !== name) : [...open, name])
  return (
    <>
      <div class="toggles" role="group" aria-label="Stages that are shown">
        {names.map((one) => (
          <button type="button" key={one} aria-pressed={open.includes(one)} onClick={() => toggle(one)}>{TITLES[one] ?? one}</button>
        ))}
      </div>
      <p class="origin" role="status">
        {chosen ? <Origin chosen={chosen} linked={linked} origins={links.origins(chosen.stage, chosen.line)} stages={content.stages} />
          : "Click a line, or move the cursor to it: the lines of the other stages that belong to it are marked. Ctrl+F searches a pane."}
      </p>
      <div class="panes" style={{ gridTemplateColumns: `repeat(${Math.max(1, shown.length)}, minmax(22rem, 1fr))` }}>
        {shown.map((one) => (
          <section key={one.stage} class="pane" aria-label={TITLES[one.stage] ?? one.stage}>
            <h3>{TITLES[one.stage] ?? one.stage}{one.note && <small> {one.note}</small>}</h3>
            {one.text
              ? <Code text={one.text} language={one.stage} label={`${TITLES[one.stage] ?? one.stage} of the kernel`} first={one.first}
                marks={linked.get(one.stage) ?? NONE} onLine={(line) => pick(one, line)} />
              : <p class="waiting">There is no text of this stage.</p>}
          </section>
        ))}
      </div>
    </>
  )
}

const NONE: number[] = []

/** The first lines that an editor can open: files whose folder is known. */
function linesOf(origins: string[]): [string, number][] {
  const known = new Map<string, [string, number]>()
  for (const one of origins.flatMap((origin) => origin.split(" ← "))) {
    const match = /^(\/.+):(\d+)$/.exec(one)
    if (match && lasts(match[1]!)) known.set(one, [match[1]!, Number(match[2])])
  }
  return [...known.values()].slice(0, 3)
}

function Origin({ chosen, linked, origins, stages }: {
  chosen: { stage: string; line: number }
  linked: Map<string, number[]>
  origins: string[]
  stages: Stage[]
}) {
  const first = stages.find((one) => one.stage === chosen.stage)?.first ?? 1
  const counts = [...linked].filter(([stage]) => stage !== chosen.stage).map(([stage, lines]) => `${TITLES[stage] ?? stage} ${lines.length}`)
  const here = stages.find((one) => one.stage === "python" && chosen.stage === "python")
  const lines = linesOf(here?.file ? [`${here.file}:${chosen.line + first - 1}`, ...origins] : origins)
  const named = origins.slice(0, 2).map((one) => one.replaceAll(/\/(?:[^/ ]+\/)+/g, "…/"))
  return (
    <>
      <strong>{TITLES[chosen.stage] ?? chosen.stage} line {chosen.line + first - 1}</strong>
      {origins.length ? <> comes from {named.join(" and ")}{origins.length > 2 && ` and ${origins.length - 2} more`}</> : <> names no Python line</>}
      {counts.length > 0 && <>; linked lines: {counts.join(", ")}</>}
      {lines.map(([file, line]) => (
        <a key={`${file}:${line}`} class="editor" href={editorHref(file, line)}>open {file.split("/").at(-1)}:{line} in VSCode</a>
      ))}
    </>
  )
}
