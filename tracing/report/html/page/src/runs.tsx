// The list of `tracing serve`: runs while they are recorded, and a form that starts a case.
import { render } from "preact"
import { useState } from "preact/hooks"
import { readAny } from "./data"
import { ask, useEachSecond } from "./live"
import { type Column, SortedTable, Theme, plural } from "./parts"
import { StartForm } from "./start"

export interface ListIndex {
  folder: string
  cases: { name: string; says: string }[]
}

interface ListedRun {
  name: string
  status: string
  detail: string
  case?: string
  started?: string
  device?: string
  target?: string
  torch?: string
  triton?: string
}

interface Started {
  number: number
  command: string
  status: number | null
  stopped: boolean
  run: string | null
  said: string[]
}

const TONES: Record<string, string> = {
  recording: "change", passed: "fine", ended: "fine", compiled: "fine", differs: "bad", failed: "bad", killed: "doubt", interrupted: "doubt", damaged: "doubt",
}

const hrefOf = (names: string[]) => `report?${names.map((one) => `run=${encodeURIComponent(one)}`).join("&")}`

function List({ index }: { index: ListIndex }) {
  const [state, change] = useState<{ runs: ListedRun[]; started: Started[] } | null>(null)
  const refresh = async () => change(await ask<{ runs: ListedRun[]; started: Started[] }>("state"))
  const failed = useEachSecond(refresh)
  return (
    <>
      <header><h1>Runs in {index.folder}</h1><Theme /></header>
      <main id="main" class="runs">
        {failed && <p class="failed" role="alert">{failed}</p>}
        <StartForm cases={index.cases} onStarted={refresh} />
        {state && state.started.length > 0 && <StartedCases started={state.started} onStopped={refresh} />}
        {state ? <Runs runs={state.runs} /> : <p class="waiting">Reading …</p>}
      </main>
    </>
  )
}

function Runs({ runs }: { runs: ListedRun[] }) {
  const [text, seek] = useState("")
  const [chosen, choose] = useState<string[]>([])
  const shown = runs.filter((one) => `${one.name} ${one.status} ${one.device}`.toLowerCase().includes(text.toLowerCase()))
  const toggle = (name: string) => choose(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name])
  const columns: Column<ListedRun>[] = [
    { title: "compare", value: (one) => (chosen.includes(one.name) ? 0 : 1), shown: (one) => <input type="checkbox" aria-label={`Compare ${one.name}`} checked={chosen.includes(one.name)} onChange={() => toggle(one.name)} /> },
    { title: "run", value: (one) => one.name, shown: (one) => (one.status === "damaged" ? <>{one.name}: {one.detail}</> : <a href={hrefOf([one.name])}>{one.name}</a>) },
    { title: "status", value: (one) => one.status, shown: (one) => <span class={`mark ${TONES[one.status] ?? ""}`}>{one.status}</span> },
    { title: "started (UTC)", value: (one) => one.started ?? "", shown: (one) => one.started?.replace("T", " ").replace("Z", "") ?? "" },
    { title: "device", value: (one) => one.device ?? "" },
    { title: "target", value: (one) => one.target ?? "" },
    { title: "torch, Triton", value: (one) => [one.torch, one.triton].filter(Boolean).join(", ") },
  ]
  if (!runs.length) return <p>There is no run yet. Start a case above, or record one with <code>tracing run CASE</code>.</p>
  return (
    <section>
      <h2>{plural(runs.length, "run")}</h2>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>Runs <input type="search" value={text} placeholder="part of a name or status" onInput={(event) => seek(event.currentTarget.value)} /></label>
        <output>{plural(shown.length, "run")}</output>
        {chosen.length > 1
          ? <a href={hrefOf([...chosen].sort())}>Compare {plural(chosen.length, "run")}</a>
          : <span class="notes">check two runs to see them side by side, more for a table</span>}
      </form>
      <SortedTable rows={shown} columns={columns} label="Runs" keyOf={(one) => one.name} />
    </section>
  )
}

function StartedCases({ started, onStopped }: { started: Started[]; onStopped: () => Promise<void> }) {
  return (
    <section>
      <h2>Started from this page</h2>
      {started.map((one) => (
        <article key={one.number} class={`finding ${one.status === null ? "" : one.status === 0 ? "fine" : one.status === 1 ? "bad" : "doubt"}`}>
          <h3><code>{one.command}</code></h3>
          <p class="links">
            <span role="status">{one.status === null ? "running" : one.stopped ? "stopped" : `ended with exit status ${one.status}`}</span>
            {one.run && <a href={hrefOf([one.run])}>{one.run}</a>}
            {one.status === null && <button type="button" onClick={async () => { await ask("stop", { number: one.number }); await onStopped() }}>Stop</button>}
          </p>
          {one.said.length > 0 && <pre tabIndex={0}>{one.said.slice(one.status === null ? -3 : -12).join("\n")}</pre>}
        </article>
      ))}
    </section>
  )
}

const app = document.getElementById("app")!
readAny<ListIndex>().then(
  (index) => { app.textContent = ""; render(<List index={index} />, app) },
  (error) => { app.textContent = `This browser cannot read the page: ${error.message ?? error}` },
)
