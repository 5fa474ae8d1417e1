// Where two runs differ: evidence, element ranges, values, and the chain of producers as a graph.
import type { Comparison, Divergence, Index, Producers } from "./data"
import { Code } from "./code"
import { Command, Commands, type Fact, Facts, Line } from "./parts"
import { type Route, hrefOf } from "./route"

export function DivergencesView({ index, route }: { index: Index; route: Route }) {
  const compared = index.comparison!
  const chosen = compared.divergences[Number(route.words[0] ?? 0)]
  return (
    <div class="divergences">
      <h2>Divergences of {index.runs[0]!.name} and {index.runs[1]!.name}</h2>
      {compared.summary.map((one) => <p key={one} class="notes">{one}</p>)}
      <Differences compared={compared} />
      {chosen && (
        <div class="split">
          <ol class="list">
            {compared.divergences.map((one, n) => (
              <li key={n}><a href={hrefOf(route.run, "divergences", n)} aria-current={one === chosen ? "true" : undefined}>{one.title}</a></li>
            ))}
          </ol>
          <DivergenceView one={chosen} index={index} />
        </div>
      )}
      {!chosen && <p>No launch differs.</p>}
      {compared.found > compared.divergences.length && <p>This report holds {compared.divergences.length} of {compared.found}; `tracing compare` prints all.</p>}
    </div>
  )
}

function Differences({ compared }: { compared: Comparison }) {
  const groups: [string, Comparison["results"]][] = [["Start", compared.start], ["Results", compared.results], ["Outcomes", compared.outcomes]]
  const rows = groups.flatMap(([what, list]) => list.map((one) => [what, one] as const))
  if (!rows.length) return null
  return (
    <details>
      <summary>{rows.length === 1 ? "1 value of the program differs" : `${rows.length} values of the program differ`}</summary>
      <Facts sides={["a", "b"]} rows={rows.map(([what, one]) => [`${what}: ${one.name}${one.rank ? ` of rank ${one.rank}` : ""}`, one.a, one.b])} />
    </details>
  )
}

function DivergenceView({ one, index }: { one: Divergence; index: Index }) {
  const accused = one.accused
  const launches = (["a", "b"] as const).filter((side) => one.launch[side] !== null)
  const settings = typeof one.a === "object" && one.a ? Object.keys({ ...one.a, ...(one.b as object) }) : []
  return (
    <article class="divergence">
      <h3>{one.title}</h3>
      <p class="links">
        {launches.map((side) => (
          <a key={side} href={hrefOf("ab".indexOf(side), "launches", one.rank, one.launch[side]!)}>launch #{one.launch[side]} in {side}</a>
        ))}
        {index.runs.map((run, n) => {
          const at = run.kernels.findIndex((kernel) => kernel.name === one.kernel && kernel.launches > 0)
          return at < 0 ? null : <a key={n} href={hrefOf(n, "kernel", at, "code")}>kernel in {"ab"[n]}</a>
        })}
      </p>
      <Facts rows={[
        ["accused", `${accused.kind} ${accused.name}${accused.argument ? `, ${accused.argument}` : ""}${accused.certain ? "" : " (not certain)"}`],
        ["differs", one.argument ? `${one.kind} ${one.argument} ${one.elements}` : one.kind],
        ["called at", one.site === null ? null : { key: one.site, shown: <Line at={one.site} run={index.runs[0]!} /> }],
        ...(one.computes.length ? [["computes", {
          key: one.computes.join(),
          shown: one.computes.map((at, n) => <span key={at}>{n > 0 && ", "}<Line at={at} run={index.runs[0]!} /></span>),
        }] as [string, Fact]] : []),
      ]} />
      <ul class="evidence">{one.evidence.map((line, n) => <li key={n}>{line}</li>)}</ul>
      {settings.length > 0 && <Facts sides={["a", "b"]} rows={settings.map((name) => [name, (one.a as Record<string, string>)[name] ?? null, (one.b as Record<string, string>)[name] ?? null])} />}
      {typeof one.a === "string" && <Facts sides={["a", "b"]} rows={[["digest", one.a, one.b as string]]} />}
      {one.ranges && <Ranges {...one.ranges} />}
      {one.values.length > 0 && <Values values={one.values} />}
      {one.diff && one.diff.length > 0 && <div class="short"><Code text={one.diff.join("\n")} language="diff" label="Difference of the code" /></div>}
      {one.producers && one.producers.nodes.length > 1 && <Graph graph={one.producers} index={index} />}
      {accused.decides && <><h4>Decides</h4><Command text={accused.decides} /></>}
      <Commands list={one.next} />
    </article>
  )
}

const CELLS = 64

/** The ranges of elements that differ, as cells from the first element to the last. */
function Ranges({ count, ranges }: { count: number; ranges: [number, number][] }) {
  const cells = Array.from({ length: CELLS }, (_, n) => {
    const [start, stop] = [(n * count) / CELLS, ((n + 1) * count) / CELLS]
    return ranges.some(([first, last]) => first < stop && last > start)
  })
  const said = ranges.map(([start, stop]) => `${start}:${stop}`).join(", ")
  return (
    <figure class="heat">
      <figcaption>Elements that differ, of {count.toLocaleString("en")}: {said}</figcaption>
      <div class="cells" role="img" aria-label={`Ranges that differ: ${said}`}>{cells.map((hot, n) => <i key={n} class={hot ? "hot" : ""}></i>)}</div>
    </figure>
  )
}

function Values({ values }: { values: [number, unknown, unknown][] }) {
  return (
    <div class="scrolled values" tabIndex={0} role="region" aria-label="Values that differ">
      <table><thead><tr><th scope="col" class="number">element</th><th scope="col" class="number">a</th><th scope="col" class="number">b</th></tr></thead>
        <tbody>{values.slice(0, 256).map(([at, a, b]) => <tr key={at}><td class="number">{at}</td><td class="number">{String(a)}</td><td class="number">{String(b)}</td></tr>)}</tbody>
      </table>
    </div>
  )
}

// ---- the chain of producers

const [WIDE, HIGH, GAP] = [230, 40, 56]

function Graph({ graph, index }: { graph: Producers; index: Index }) {
  const level = levels(graph)
  const columns = Math.max(...level) + 1
  const used = new Map<number, number>()
  const at = graph.nodes.map((_, n) => {
    const row = used.get(level[n]!) ?? 0
    used.set(level[n]!, row + 1)
    return [(columns - 1 - level[n]!) * (WIDE + GAP) + 4, row * (HIGH + 14) + 4] as const
  })
  const [width, height] = [columns * (WIDE + GAP) - GAP + 8, Math.max(...used.values()) * (HIGH + 14) + 8]
  const hot = new Set(index.comparison?.divergences.map((one) => `${one.rank} ${graph.run ? one.launch.b : one.launch.a}`))
  return (
    <figure class="graph">
      <figcaption>What the launch read comes from, in {"ab"[graph.run]}, left to right{graph.cut && "; earlier ones are left out"}</figcaption>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Chain of producers">
        <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={`${graph.nodes.length} producers`}>
          {graph.edges.map((edge, n) => <Edge key={n} from={at[edge.writer]!} to={at[edge.reader]!} title={edge.argument} />)}
          {graph.nodes.map((node, n) => {
            const [x, y] = at[n]!
            const diverges = node.kind === "launch" && hot.has(`${graph.rank} ${node.index}`)
            const box = (
              <>
                <rect x={x} y={y} width={WIDE} height={HIGH} rx="4" class={`node ${diverges ? "bad" : node.kind}`} />
                <text x={x + 10} y={y + 17}>{node.kind} #{node.index}{diverges ? " diverges" : ""}</text>
                <text x={x + 10} y={y + 32} class="name">{node.name.length > 32 ? `${node.name.slice(0, 31)}…` : node.name}</text>
                <title>{`${node.kind} #${node.index} ${node.name}`}</title>
              </>
            )
            return node.kind === "launch" ? <a key={n} href={hrefOf(graph.run, "launches", graph.rank, node.index)}>{box}</a> : <g key={n}>{box}</g>
          })}
        </svg>
      </div>
    </figure>
  )
}

function Edge({ from, to, title }: { from: readonly [number, number]; to: readonly [number, number]; title: string }) {
  const [x, y, u, v] = [from[0] + WIDE, from[1] + HIGH / 2, to[0], to[1] + HIGH / 2]
  const bend = Math.max(20, (u - x) / 2)
  return <path class="edge" d={`M${x},${y} C${x + bend},${y} ${u - bend},${v} ${u},${v}`}><title>{title}</title></path>
}

/** How many reads a node is away from the launch, the first node. */
function levels(graph: Producers): number[] {
  const level: number[] = graph.nodes.map((_, n) => (n ? -1 : 0))
  for (const edge of graph.edges) // nearest first
    if (level[edge.writer]! < 0) level[edge.writer] = level[edge.reader]! + 1
  return level
}
