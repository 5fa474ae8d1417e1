// What commands answered about a run: their text, tables, bars and heat maps.
import type { Index, KeptAnswer } from "./data"
import { Commands } from "./parts"
import { type Route, hrefOf } from "./route"

const TONES = ["fine", "bad", "doubt"]

export function AnswersView({ index, route }: { index: Index; route: Route }) {
  const run = index.runs[route.run]!
  return (
    <div class="answers">
      <h2>Answers about {run.name}</h2>
      {run.answers.length === 0 && <p>No command has answered about this run yet: <code>judge</code>, <code>replay</code>, <code>swap</code>, <code>bisect</code>, <code>diff</code>, <code>check</code> and <code>guards</code> keep their answers in it.</p>}
      {run.answers.map((one, n) => <AnswerView key={n} one={one} run={route.run} />)}
    </div>
  )
}

function AnswerView({ one, run }: { one: KeptAnswer; run: number }) {
  return (
    <article class={`finding ${TONES[one.status] ?? "doubt"}`}>
      <h3><code>{one.command}</code></h3>
      <p class="notes">exit status {one.status}, {one.asked}, by version {one.version}
        {one.launch !== null && <> · <a href={hrefOf(run, "launches", one.rank, one.launch)}>launch #{one.launch} {one.kernel}</a></>}
      </p>
      <pre tabIndex={0}>{one.lines.join("\n")}</pre>
      {one.bars.map((chart, n) => <Bars key={n} {...chart} />)}
      {one.tables.map((table, n) => <TableView key={n} {...table} />)}
      {one.heat.map((map, n) => <HeatMap key={n} {...map} />)}
      <Commands list={one.next} />
    </article>
  )
}

function TableView({ title, columns, rows }: KeptAnswer["tables"][number]) {
  const numeric = columns.map((_, n) => rows.some((row) => row[n]) && rows.every((row) => /^$|^[-+\d]/.test(row[n] ?? "")))
  return (
    <div class="scrolled" tabIndex={0} role="region" aria-label={title}>
      <table>
        <caption>{title}</caption>
        <thead><tr>{columns.map((one, n) => <th scope="col" key={one} class={numeric[n] ? "number" : ""}>{one}</th>)}</tr></thead>
        <tbody>{rows.map((row, k) => <tr key={k}>{columns.map((_, n) => <td key={n} class={numeric[n] ? "number" : ""}>{row[n]}</td>)}</tr>)}</tbody>
      </table>
    </div>
  )
}

function Bars({ title, unit, bars }: KeptAnswer["bars"][number]) {
  const most = Math.max(...bars.map(([, value]) => value), 0) || 1
  return (
    <figure class="bars">
      <figcaption>{title}</figcaption>
      <dl>{bars.map(([name, value], n) => (
        <div key={n}><dt>{name}</dt><dd><i style={{ width: `${(60 * value) / most}%` }}></i>{value.toPrecision(3)} {unit}</dd></div>
      ))}</dl>
    </figure>
  )
}

/** The largest error of each cell, darker by its logarithm; white: nothing differs. */
function HeatMap({ title, cells }: KeptAnswer["heat"][number]) {
  const known = cells.flat().filter((one): one is number => one !== null && one > 0)
  const [low, high] = [Math.log(Math.min(...known)), Math.log(Math.max(...known))]
  const share = (value: number) => (high > low ? (Math.log(value) - low) / (high - low) : 1)
  const columns = cells[0]?.length ?? 0
  const off = cells.flat().filter((one) => one !== 0).length
  return (
    <figure class="map">
      <figcaption>{title}{known.length > 0 && <>: errors from {Math.min(...known).toPrecision(3)} to {Math.max(...known).toPrecision(3)}</>}</figcaption>
      <div class="grid" role="img" aria-label={`${title}: ${off} of ${cells.length * columns} cells differ`} style={{ gridTemplateColumns: `repeat(${columns}, 1fr)`, maxWidth: `${columns * 14}px` }}>
        {cells.flatMap((row, k) => row.map((value, n) => (
          <i key={`${k} ${n}`} class={value === null ? "infinite" : value ? "hot" : ""} style={value ? { opacity: 0.2 + 0.8 * share(value) } : {}}
            title={`row ${k}, column ${n}: ${value === null ? "not finite" : value.toPrecision(3)}`}></i>
        )))}
      </div>
    </figure>
  )
}
