// What is known of the runs in addition to launches and kernels: environment, results, choices, guards, violations.
import type { Index, RunData } from "./data"
import { Facts, Line, SortedTable } from "./parts"
import { NotCovered } from "./overview"

export function RunView({ index, run }: { index: Index; run: number }) {
  const one = index.runs[run]!
  return (
    <div class="environment">
      <h2>Environment</h2>
      <Facts sides={index.runs.map((each) => each.name)} rows={environment(index.runs)} />
      <NotCovered index={index} />
      <Ending one={one} />
      {one.results.length > 0 && <>
        <h2>Results</h2>
        <SortedTable label="Results" rows={one.results} keyOf={(row) => `${row.rank} ${row.name}`} columns={[
          { title: "name", value: (row) => row.name }, { title: "rank", value: (row) => row.rank, numeric: true },
          { title: "value", value: (row) => row.value },
        ]} />
      </>}
      {one.winners.length > 0 && <>
        <h2>Choices of autotuners</h2>
        <SortedTable label="Choices of autotuners" rows={one.winners} keyOf={(row) => row.kernel + row.tuner + row.key.join()} columns={[
          { title: "kernel", value: (row) => row.kernel }, { title: "tuner", value: (row) => row.tuner },
          { title: "key", value: (row) => row.key.join(", ") },
          { title: "choice", value: (row) => Object.entries(row.by_rank).map(([rank, config]) => `rank ${rank}: ${Object.entries(config).map((pair) => pair.join("=")).join(" ")}`).join("; ") },
          { title: "ranks agree", value: (row) => (row.agreed ? "yes" : "no") },
        ]} />
      </>}
      {one.violations.length > 0 && <>
        <h2>Constraints that are violated</h2>
        <SortedTable label="Violations" rows={one.violations} keyOf={(row) => row.constraint + row.node} columns={[
          { title: "constraint", value: (row) => row.constraint }, { title: "node", value: (row) => `${row.node} (${row.operator})` },
          { title: "found", value: (row) => (row.decided ? "" : "undecided: ") + row.found }, { title: "needed", value: (row) => row.required },
          { title: "line", value: (row) => row.python, shown: (row) => <><Line at={row.python} run={one} />{row.code && <>: <code>{row.code}</code></>}</> },
        ]} />
      </>}
      {one.frames.length > 0 && <Frames frames={one.frames} run={one} />}
    </div>
  )
}

function environment(runs: RunData[]): [string, ...(string | number | null)[]][] {
  const row = (name: string, value: (run: RunData) => string | number | null): [string, ...(string | number | null)[]] => [name, ...runs.map(value)]
  const knobs = [...new Set(runs.flatMap((run) => Object.keys(run.knobs)))]
  const variables = [...new Set(runs.flatMap((run) => run.variables.map(([name]) => name)))]
  return [
    row("path", (run) => run.path), row("recorded", (run) => run.started), row("file", (run) => run.case_path),
    row("command", (run) => run.program.join(" ")), row("device", (run) => run.device), row("target", (run) => run.target),
    row("torch", (run) => run.torch), row("Triton", (run) => run.triton), row("Python", (run) => run.python),
    row("host", (run) => run.host), row("platform", (run) => run.platform), row("seed", (run) => run.seed),
    row("digests", (run) => run.recorded["digests"] ?? null), row("operators", (run) => run.recorded["operators"] ?? null),
    ...knobs.map((name) => row(name, (run) => run.knobs[name] ?? null)),
    ...variables.map((name) => row(name, (run) => run.variables.find(([known]) => known === name)?.[1] ?? null)),
  ]
}

function Ending({ one }: { one: RunData }) {
  return (
    <section>
      <h2>Ending</h2>
      {one.outcomes.map((each, n) => (
        <div key={n}><p><strong>{each.status}</strong>: {each.detail}</p>{each.traceback && <pre tabIndex={0}>{each.traceback}</pre>}</div>
      ))}
      {one.failures.map((each, n) => <div key={n}><p>{each.kind} {each.name}: {each.reason} {each.python && <Line at={each.python} run={one} />}</p><pre tabIndex={0}>{each.source.join("\n")}</pre></div>)}
      {one.perturbed.length > 0 && <ul>{one.perturbed.map((each, n) => <li key={n}>perturbed: {each.what} {each.how || `(not: ${each.why_not})`}</li>)}</ul>}
      {one.evidence.length > 0 && <><h3>Memory evidence</h3><ul>{one.evidence.map((each, n) => <li key={n}>launch #{each.launch}: {each.text}</li>)}</ul></>}
    </section>
  )
}

function Frames({ frames, run }: { frames: RunData["frames"]; run: RunData }) {
  return (
    <section>
      <h2>Frames that Dynamo compiled</h2>
      {frames.map((one) => (
        <details key={one.compile_id + one.function}>
          <summary>{one.function} ({one.python}), compile {one.compile_id}: {one.operators} operators, {one.guards.length} guards
            {one.breaks.length > 0 && <span class="mark doubt">{one.breaks.length} graph breaks</span>}
            {one.failed.length > 0 && <span class="mark doubt">recompiled</span>}
            {one.eager && <span class="mark doubt">eager</span>}
          </summary>
          {one.eager && <p>{one.eager}</p>}
          {one.breaks.length > 0 && <ul>{one.breaks.map((each, n) => <li key={n}><strong>graph break</strong> <Line at={each.python} run={run} />: <code>{each.line}</code> {each.reason}</li>)}</ul>}
          {one.failed.length > 0 && <ul>{one.failed.map((each, n) => <li key={n}><strong>recompiled</strong>: of compile {each.compile_id} failed <code>{each.code}</code></li>)}</ul>}
          <ul class="guards">{one.guards.map((each, n) => <li key={n}><code>{each.code}</code> <Line at={each.python} run={run} /></li>)}</ul>
        </details>
      ))}
    </section>
  )
}
