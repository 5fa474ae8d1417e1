// All launches of a run: timeline, filters, table; and one launch in full.
import { useMemo, useState } from "preact/hooks"
import { type Columns, DIVERGES, type DigestRow, EVIDENCE, INF, type Index, type LaunchBlock, NAN, type RunData } from "./data"
import { Commands, type Fact, Facts, Line, Marks, Waiting, micros, plural, useChunk } from "./parts"
import { type Route, goTo, hrefOf } from "./route"
import { type RowColumn, Rows } from "./rows"
import { Timeline } from "./timeline"

const MARKS: [string, number][] = [["all launches", 0], ["that diverge", DIVERGES], ["with NaN or inf", NAN | INF], ["with memory evidence", EVIDENCE]]

export function LaunchesView({ index, route }: { index: Index; route: Route }) {
  const run = index.runs[route.run]!
  const { value: columns, failed } = useChunk<Columns>(run.launches.columns)
  if (!run.launches.count) return <p>This run has no launches.</p>
  return columns ? <Launches key={route.run} index={index} route={route} run={run} columns={columns} /> : <Waiting failed={failed} />
}

function Launches({ index, route, run, columns }: { index: Index; route: Route; run: RunData; columns: Columns }) {
  const [name, setName] = useState("")
  const [bits, setBits] = useState(0)
  const [rank, setRank] = useState(-1)
  const [step, setStep] = useState("")
  const ranks = useMemo(() => [...new Set(columns.rank)].sort((a, b) => a - b), [columns])
  const steps = useMemo(() => columns.step.some((one) => one >= 0), [columns])
  const rows = useMemo(() => filtered(run, columns, name, bits, rank, step), [run, columns, name, bits, rank, step])
  const chosen = useMemo(() => rowOf(columns, route.words), [columns, route.words.join()])
  const open = (row: number) => goTo(hrefOf(route.run, "launches", columns.rank[row]!, columns.index[row]!))
  const shape = layout(run, ranks.length > 1, steps)
  return (
    <div class="launches">
      <h2>{plural(columns.index.length, "launch")}</h2>
      <Timeline columns={columns} streams={run.launches.streams} selected={chosen} onOpen={open} />
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>Kernel <input type="search" value={name} placeholder="part of a name" onInput={(event) => setName(event.currentTarget.value)} /></label>
        <label>Show <select value={bits} onChange={(event) => setBits(Number(event.currentTarget.value))}>
          {MARKS.map(([title, bit]) => <option key={bit} value={bit}>{title}</option>)}
        </select></label>
        {ranks.length > 1 && <label>Rank <select value={rank} onChange={(event) => setRank(Number(event.currentTarget.value))}>
          <option value={-1}>all</option>
          {ranks.map((one) => <option key={one} value={one}>{one}</option>)}
        </select></label>}
        {steps && <label>Step <input type="search" inputMode="numeric" size={6} value={step} onInput={(event) => setStep(event.currentTarget.value)} /></label>}
        <output>{plural(rows.length, "launch")}</output>
      </form>
      <div class={chosen >= 0 ? "split wide opened" : "split wide"}>
        <Rows count={rows.length} columns={shape.columns} label="Launches" selected={chosen < 0 ? -1 : rows.indexOf(chosen)}
          onOpen={(row) => rows[row] !== undefined && open(rows[row]!)} cells={(row) => shape.cells(columns, rows[row]!)} />
        {chosen >= 0 && <LaunchDetail index={index} route={route} run={run} columns={columns} row={chosen} />}
      </div>
    </div>
  )
}

function filtered(run: RunData, columns: Columns, name: string, bits: number, rank: number, step: string): number[] {
  const text = name.toLowerCase()
  const named = run.kernels.map((one) => one.label.toLowerCase().includes(text) || one.hash.startsWith(text))
  const rows: number[] = []
  for (let row = 0; row < columns.index.length; row++)
    if (named[columns.kernel[row]!] && (!bits || columns.flags[row]! & bits) && (rank < 0 || columns.rank[row] === rank)
      && (!step || String(columns.step[row]) === step)) rows.push(row)
  return rows
}

function rowOf(columns: Columns, words: string[]): number {
  if (words.length < 2) return -1
  const [rank, index] = words.map(Number)
  for (let row = 0; row < columns.index.length; row++) if (columns.index[row] === index && columns.rank[row] === rank) return row
  return -1
}

function layout(run: RunData, ranks: boolean, steps: boolean) {
  const streams = run.launches.streams.length > 1
  const timed = run.kernels.some((one) => one.device_us > 0)
  const columns: RowColumn[] = [
    { title: "#", width: "4.5rem", numeric: true },
    ...(ranks ? [{ title: "rank", width: "3.5rem", numeric: true }] : []),
    ...(steps ? [{ title: "step", width: "4rem", numeric: true }] : []),
    { title: "kernel", width: "minmax(14rem, 3fr)" },
    { title: "marks", width: "9rem" },
    { title: "call site", width: "minmax(8rem, 2fr)" },
    ...(streams ? [{ title: "stream", width: "5rem", numeric: true }] : []),
    { title: timed ? "device" : "host", width: "6.5rem", numeric: true },
  ]
  const cells = (all: Columns, row: number) => [
    all.index[row],
    ...(ranks ? [all.rank[row]] : []),
    ...(steps ? [all.step[row]! < 0 ? "" : all.step[row]] : []),
    run.kernels[all.kernel[row]!]?.label,
    <Marks flags={all.flags[row]!} />,
    run.launches.sites[all.site[row]!] ?? "",
    ...(streams ? [run.launches.streams[all.stream[row]!]] : []),
    micros((timed ? all.device_us : all.wall_us)[row]!),
  ]
  return { columns, cells }
}

// ---- one launch

function LaunchDetail({ index, route, run, columns, row }: { index: Index; route: Route; run: RunData; columns: Columns; row: number }) {
  const { block, blocks } = run.launches
  const { value, failed } = useChunk<LaunchBlock>(blocks[Math.floor(row / block)])
  const kernel = run.kernels[columns.kernel[row]!]!
  const diverging = index.comparison?.divergences.findIndex((one) => one.rank === columns.rank[row] && (route.run ? one.launch.b : one.launch.a) === columns.index[row]) ?? -1
  const launch = value?.rows[row % block]
  return (
    <aside class="detail" aria-label={`Launch ${columns.index[row]}`}>
      <h3>#{columns.index[row]} <a href={hrefOf(route.run, "kernel", columns.kernel[row]!, "code")}>{kernel.label}</a> <Marks flags={columns.flags[row]!} /></h3>
      {diverging >= 0 && <p><a href={hrefOf(route.run, "divergences", diverging)}>Why it diverges</a></p>}
      {!launch || !value ? <Waiting failed={failed} /> : <>
        <Facts rows={[
          ["grid", launch[0].join(" × ")], ["device", launch[2]], ["phase", columns.phase[row] ? "backward" : "forward"],
          ["stream, thread", `${run.launches.streams[columns.stream[row]!]}, ${launch[1]}`],
          ["step", columns.step[row]! < 0 ? null : columns.step[row]!], ["called at", lineOf(run.launches.sites[columns.site[row]!] ?? null, run)],
          ["host", micros(columns.wall_us[row]!)], ["device time", micros(columns.device_us[row]!)],
        ]} />
        <Arguments value={value} args={launch[3]} user={launch[4]} other={<Other index={index} route={route} columns={columns} row={row} />} />
      </>}
      <Commands list={[`${run.show}${columns.index[row]}`]} />
    </aside>
  )
}

function lineOf(at: string | null, run: RunData): Fact {
  return at === null ? null : { key: at, shown: <Line at={at} run={run} /> }
}

function Arguments({ value, args, user, other }: {
  value: LaunchBlock
  args: LaunchBlock["rows"][number][3]
  user: LaunchBlock["rows"][number][4]
  other: preact.ComponentChildren
}) {
  const tensors = args.filter(([number]) => value.arguments[number]![2] !== null)
  const scalars = args.filter(([number]) => value.arguments[number]![2] === null)
  return (
    <>
      <h4>Arguments</h4>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Arguments">
        <table class="arguments">
          <thead><tr><th scope="col">argument</th><th scope="col">role</th><th scope="col">tensor</th><th scope="col">digest</th><th scope="col" class="number">Σ|x|</th><th scope="col">values</th></tr></thead>
          <tbody>
            {tensors.map(([number, storage, before, after]) => {
              const [name, role, tensor, layout, , writer] = value.arguments[number]!
              return (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>{role}{writer && <small> last written by {writer}</small>}</td>
                  <td title={`${layout}, storage ${storage}`}>{tensor}</td>
                  <td class="digest"><Digests before={value.digests[before]} after={value.digests[after]} /></td>
                  <td class="number">{value.digests[after]?.[1] ?? "–"}</td>
                  <td><Counts digest={value.digests[after]} /></td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
      {scalars.length > 0 && <p class="scalars">{scalars.map(([number]) => <code key={number}>{value.arguments[number]![0]}={value.arguments[number]![4]}</code>)}</p>}
      {user && <p class="scalars">hash_fn: {JSON.stringify(user[0])} → {JSON.stringify(user[1])}</p>}
      {other}
    </>
  )
}

const DIGITS = 12 // of a digest, as tracing show prints them

function Digests({ before, after }: { before?: DigestRow; after?: DigestRow }) {
  if (!after) return <>not digested</>
  const [x, y] = [before?.[0], after[0]]
  return x === undefined || x === y ? <code title={y}>{y.slice(0, DIGITS)}</code>
    : <><code title={x}>{x.slice(0, DIGITS)}</code> → <code title={y}>{y.slice(0, DIGITS)}</code></>
}

function Counts({ digest }: { digest?: DigestRow }) {
  if (!digest) return null
  const [, , nan, inf, negative] = digest
  return <>
    {nan > 0 && <span class="mark doubt">{nan} NaN</span>}
    {inf > 0 && <span class="mark doubt">{inf} inf</span>}
    {negative > 0 && <span>{negative} × −0</span>}
  </>
}

/** The same launch of the other run: the one of this kernel's name with the same number among those of a rank. */
function Other({ index, route, columns, row }: { index: Index; route: Route; columns: Columns; row: number }) {
  const other = 1 - route.run
  const run = index.runs[other]
  const mine = index.runs[route.run]!
  const { value: theirs } = useChunk<Columns>(run?.launches.columns)
  const name = mine.kernels[columns.kernel[row]!]!.name
  const at = useMemo(() => {
    if (!run || !theirs) return -1
    const divergence = index.comparison?.divergences.find((one) => one.rank === columns.rank[row] && (route.run ? one.launch.b : one.launch.a) === columns.index[row])
    const known = divergence && (route.run ? divergence.launch.a : divergence.launch.b)
    if (known !== null && known !== undefined) return rowOf(theirs, [String(columns.rank[row]), String(known)])
    let left = 0
    for (let n = 0; n < row; n++) if (columns.rank[n] === columns.rank[row] && mine.kernels[columns.kernel[n]!]!.name === name) left++
    for (let n = 0; n < theirs.index.length; n++)
      if (theirs.rank[n] === columns.rank[row] && run.kernels[theirs.kernel[n]!]!.name === name && left-- === 0) return n
    return -1
  }, [run, theirs, row, columns])
  const { value } = useChunk<LaunchBlock>(at < 0 || !run ? null : run.launches.blocks[Math.floor(at / run.launches.block)])
  const { value: own } = useChunk<LaunchBlock>(mine.launches.blocks[Math.floor(row / mine.launches.block)])
  if (!run) return null
  if (at < 0) return <p>{theirs ? `${"ab"[other]} has no such launch.` : ""}</p>
  if (!value || !own) return null
  const rows = compared(own, row % mine.launches.block, value, at % run.launches.block)
  return (
    <section class="other">
      <h4>In {"ab"[other]}: <a href={hrefOf(other, "launches", theirs!.rank[at]!, theirs!.index[at]!)}>launch #{theirs!.index[at]}</a></h4>
      <ul>{rows.map(([argument, said, tone]) => <li key={argument}><code>{argument}</code> <span class={`mark ${tone}`}>{said}</span></li>)}</ul>
    </section>
  )
}

function compared(own: LaunchBlock, row: number, theirs: LaunchBlock, at: number): [string, string, string][] {
  const named = (block: LaunchBlock, n: number) => new Map(block.rows[n]![3].map((one) => [block.arguments[one[0]]![0], one]))
  const others = named(theirs, at)
  const rows: [string, string, string][] = []
  for (const [name, [number, , before, after]] of named(own, row)) {
    const other = others.get(name)
    if (!other) { rows.push([name, "only here", "doubt"]); continue }
    if (own.arguments[number]![2] === null) {
      if (own.arguments[number]![4] !== theirs.arguments[other[0]]![4]) rows.push([name, `${own.arguments[number]![4]} | ${theirs.arguments[other[0]]![4]}`, "bad"])
      continue
    }
    // what a kernel does not read is uninitialised before it; what it does not write is the same after it
    const role = own.arguments[number]![1]
    const differs = (x: number, y: number) => (own.digests[x]?.[0] ?? "") !== (theirs.digests[y]?.[0] ?? "")
    const sides = [role !== "out" && differs(before, other[2]) && "before", role !== "in" && differs(after, other[3]) && "after"].filter(Boolean)
    rows.push([name, sides.length ? `differs ${sides.join(" and ")}` : "equal bits", sides.length ? "bad" : "fine"])
  }
  return rows
}
