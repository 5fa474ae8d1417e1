// The first screen: what was found, and what the runs are.
import type { Finding, Index } from "./data"
import { Commands, Facts, plural } from "./parts"
import { hrefOf } from "./route"
import { KernelTable } from "./table"

export function Overview({ index }: { index: Index }) {
  const sides = index.table ? [] : index.runs.map((_, n) => "ab"[n]!)
  const facts = (value: (run: Index["runs"][number]) => string | number | null) => index.runs.map(value)
  return (
    <div class="overview">
      <h2>Findings</h2>
      {index.findings.map((one, n) => <FindingView key={n} one={one} index={index} />)}
      {index.comparison && index.comparison.summary.length > 0 && (
        <ul class="notes">{index.comparison.summary.map((one) => <li key={one}>{one}</li>)}</ul>
      )}
      {index.table && <KernelTable index={index} />}
      <h2>{index.runs.length > 1 ? "Runs" : "Run"}</h2>
      <Facts sides={index.runs.map((run, n) => (sides.length > 1 ? `${sides[n]}: ` : "") + run.name)} rows={[
        [index.runs[0]!.kind, ...facts((run) => (run.kind === "case" ? run.case : run.program.join(" ")))],
        ["ended", ...facts((run) => run.outcomes[0]?.detail || run.status)],
        ["device", ...facts((run) => `${run.device}, kernels compiled for ${run.target}`)],
        ["torch", ...facts((run) => run.torch)],
        ["Triton", ...facts((run) => run.triton)],
        ["seed", ...facts((run) => run.seed)],
        ...(index.table ? [] : [["kernels", ...facts((run) => run.kernels.length)], ["launches", ...facts((run) => run.launches.count)]] as [string, ...number[]][]),
        ["ranks", ...facts((run) => run.world_size)],
      ]} />
      <Constraints index={index} />
      {!index.table && <NotCovered index={index} />}
    </div>
  )
}

/** How often each run violates each kind of constraint. */
function Constraints({ index }: { index: Index }) {
  const kinds = [...new Set(index.runs.flatMap((run) => Object.keys(run.constraints)))]
  if (!kinds.length) return null
  const said = (run: Index["runs"][number], kind: string) => {
    const count = run.constraints[kind]
    if (!count) return "not checked"
    const parts = [count.violated && `${count.violated} violated`, count.undecided && `${count.undecided} undecided`]
    return parts.filter(Boolean).join(", ") || "kept"
  }
  return <>
    <h2>Constraints</h2>
    <Facts sides={index.runs.map((run) => run.case || run.name)} rows={kinds.map((kind) => [kind, ...index.runs.map((run) => said(run, kind))])} />
  </>
}

/** What the recorder could not observe, of each run. */
export function NotCovered({ index }: { index: Index }) {
  return (
    <section>
      <h2>Not covered</h2>
      {index.runs.map((run, n) => {
        const unknown = run.nan.unknown.map((what) => ({ what, setting: "" }))
        const all = [...run.not_covered, ...unknown]
        return (
          <div key={n}>
            {index.runs.length > 1 && <h3>{"ab"[n]}: {run.name}</h3>}
            {all.length ? (
              <ul>{all.map((one, k) => <li key={k}>{one.what}{one.setting && <>: <code>{one.setting}</code> records it</>}</li>)}</ul>
            ) : <p>The recorder met nothing that it could not observe.</p>}
          </div>
        )
      })}
    </section>
  )
}

function FindingView({ one, index }: { one: Finding; index: Index }) {
  return (
    <article class={`finding ${one.tone}`}>
      <h3>{one.title}</h3>
      {one.lines.length > 0 && <ul>{one.lines.map((line, n) => <li key={n}>{line}</li>)}</ul>}
      <p class="links">
        {one.answer !== null && <a href={hrefOf(one.answer[0], "answers")}>the whole answer</a>}
        {one.divergence !== null && <a href={hrefOf(one.launch?.[0] ?? 0, "divergences", one.divergence)}>evidence</a>}
        {one.launch && <a href={hrefOf(one.launch[0], "launches", one.launch[1], one.launch[2])}>launch #{one.launch[2]}</a>}
        {one.kernel && <a href={hrefOf(one.kernel[0], "kernel", one.kernel[1], "passes")}>passes of {index.runs[one.kernel[0]]!.kernels[one.kernel[1]]!.label}</a>}
        {one.launch && <KernelOf index={index} launch={one} />}
      </p>
      <Commands list={one.next} />
    </article>
  )
}

function KernelOf({ index, launch }: { index: Index; launch: Finding }) {
  const divergence = launch.divergence === null ? null : index.comparison?.divergences[launch.divergence]
  if (!divergence || !launch.launch) return null
  const run = launch.launch[0]
  const at = index.runs[run]!.kernels.findIndex((one) => one.name === divergence.kernel && one.launches > 0)
  return at < 0 ? null : <a href={hrefOf(run, "kernel", at, "code")}>kernel {index.runs[run]!.kernels[at]!.label}</a>
}

export function countOf(index: Index): string {
  return index.comparison ? plural(index.comparison.found, "divergence") : ""
}
