// More than two runs: which kernels differ in which of them.
import { useState } from "preact/hooks"
import type { Index } from "./data"
import { served } from "./live"
import { plural } from "./parts"

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
const letter = (number: number) => LETTERS[number] ?? `#${number}`

export function KernelTable({ index }: { index: Index }) {
  const table = index.table!
  const differing = table.kernels.filter((one) => one.differs)
  const [all, show] = useState(differing.length === 0)
  const rows = all ? table.kernels : differing
  return (
    <section class="kernel-table">
      <h2>Kernels</h2>
      <p>{differing.length} of {plural(table.kernels.length, "kernel")} differ. Runs with the same letter have the same code, or wrote the same values.</p>
      <label class="check"><input type="checkbox" checked={all} onChange={() => show(!all)} /> show kernels that are equal in all runs</label>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Kernels of all runs">
        <table>
          <thead><tr><th scope="col">kernel</th>{index.runs.map((run, n) => <th scope="col" key={n}><Named index={index} n={n} name={run.name} /></th>)}</tr></thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.name}>
                <th scope="row"><code>{row.name}</code></th>
                {row.runs.map((cell, n) => <td key={n}>{cell ? <Cell row={row} cell={cell} /> : <span class="mark doubt">not launched</span>}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Cell({ row, cell }: { row: NonNullable<Index["table"]>["kernels"][number]; cell: { launches: number; code: number; values: number | null } }) {
  const known = row.runs.filter((one) => one !== null)
  const codes = new Set(known.map((one) => one.code)).size > 1
  const values = new Set(known.map((one) => one.values)).size > 1
  const tone = (number: number | null) => (number === known[0]!.code ? "" : " bad")
  return (
    <>
      {plural(cell.launches, "launch")}
      {codes && <span class={`mark${tone(cell.code)}`}>code {letter(cell.code)}</span>}
      {values && <span class={`mark${cell.values === known[0]!.values ? "" : " bad"}`}>{cell.values === null ? "no digests" : `values ${letter(cell.values)}`}</span>}
    </>
  )
}

/** The name of a run; of a served page a link to the first run and this one side by side. */
function Named({ index, n, name }: { index: Index; n: number; name: string }) {
  if (!served) return <>{name}</>
  const pair = n === 0 ? [name] : [index.runs[0]!.name, name]
  return <a href={`report?${pair.map((one) => `run=${encodeURIComponent(one)}`).join("&")}`}>{name}</a>
}
