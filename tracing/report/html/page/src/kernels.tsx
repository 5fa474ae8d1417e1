// All kernels of a run, sorted and filtered.
import { useState } from "preact/hooks"
import type { Index, KernelRow } from "./data"
import { type Column, Marks, SortedTable, micros, plural } from "./parts"
import { type Route, hrefOf } from "./route"

export function KernelsView({ index, route }: { index: Index; route: Route }) {
  const [text, change] = useState("")
  const run = index.runs[route.run]!
  const positions = new Map(run.kernels.map((one, n) => [one, n]))
  const pairs = new Map(index.comparison?.kernels.map((one) => [route.run === 0 ? one.a : one.b, one]))
  const wanted = text.toLowerCase()
  const rows = run.kernels.filter((one) => one.label.toLowerCase().includes(wanted) || one.hash.startsWith(wanted))
  const columns: Column<KernelRow>[] = [
    { title: "kernel", value: (one) => one.label, shown: (one) => <><a href={hrefOf(route.run, "kernel", positions.get(one)!, "code")}>{one.label}</a> <Marks flags={one.flags} /></> },
    { title: "launches", value: (one) => one.launches, numeric: true },
    { title: "host time", value: (one) => one.wall_us, shown: (one) => micros(one.wall_us || -1), numeric: true },
    { title: "device time", value: (one) => one.device_us, shown: (one) => micros(one.device_us || -1), numeric: true },
    { title: "passes", value: (one) => one.passes, shown: (one) => one.passes ? <a href={hrefOf(route.run, "kernel", positions.get(one)!, "passes")} aria-label={`passes of ${one.label}`}>{one.changed} of {one.passes} changed</a> : "–", numeric: true },
    { title: "compile ms", value: (one) => one.pass_ms, numeric: true },
    { title: "warps", value: (one) => one.num_warps, numeric: true },
    { title: "stages", value: (one) => one.num_stages, numeric: true },
    { title: "target", value: (one) => one.target },
    ...(index.comparison ? [{ title: "a and b", value: (one: KernelRow) => said(pairs.get(one.hash)) }] : []),
  ]
  return (
    <div class="kernels">
      <h2>{plural(run.kernels.length, "kernel")}</h2>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>Kernel <input type="search" value={text} placeholder="part of a name" onInput={(event) => change(event.currentTarget.value)} /></label>
        <output>{plural(rows.length, "kernel")}</output>
      </form>
      <SortedTable rows={rows} columns={columns} label="Kernels" keyOf={(one) => one.hash + one.name} />
    </div>
  )
}

function said(pair: { equal: boolean; known: boolean } | undefined): string {
  return !pair ? "only here" : pair.equal ? "equal" : pair.known ? "differ" : "not compared"
}
