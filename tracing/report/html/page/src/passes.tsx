// The passes of a kernel: what each changed, in operations and as a diff; of two runs, where their IR differs.
import { useState } from "preact/hooks"
import { Code } from "./code"
import type { Index, KernelRow, Pass, PassPairs } from "./data"
import { Facts, plural, useChunk } from "./parts"
import { type Route, hrefOf } from "./route"

export function PassesOf({ index, route, kernel, passes }: { index: Index; route: Route; kernel: KernelRow; passes: Pass[] }) {
  const [all, show] = useState(false)
  const pair = index.comparison?.kernels.find((one) => (route.run === 0 ? one.a : one.b) === kernel.hash)
  const { value: pairs } = useChunk<PassPairs>(pair?.chunk)
  if (!passes.length) return <p>No pass of this kernel was recorded: it came from a warm cache, or passes were not recorded.</p>
  const states = new Map(pairs?.pairs.map((one) => [route.run === 0 ? one.a : one.b, one]))
  const wanted = route.words[2]
  const chosen = passes.find((one) => String(one.index) === wanted)
    ?? passes.find((one) => states.get(one.index)?.state === "diverges") ?? passes.find((one) => one.changed) ?? passes[0]!
  const shown = passes.filter((one) => all || one.changed || !one.ended || one === chosen)
  return (
    <div class="passes">
      {pairs && <Pairs pairs={pairs} />}
      {pair && !pair.chunk && pair.equal && <p>Every pass of both runs left the same IR.</p>}
      <div class="split">
        <div class="list scrolled" tabIndex={0} role="region" aria-label="Passes">
          <label class="check"><input type="checkbox" checked={all} onChange={() => show(!all)} /> show passes that changed nothing</label>
          <table>
            <thead><tr><th scope="col">#</th><th scope="col">stage</th><th scope="col">pass</th><th scope="col" class="number">ms</th>{pairs && <th scope="col">a and b</th>}</tr></thead>
            <tbody>
              {shown.map((one) => (
                <tr key={one.index} class={one === chosen ? "selected" : ""}>
                  <td class="number">{one.index}</td>
                  <td>{one.stage}</td>
                  <td>
                    <a href={hrefOf(route.run, "kernel", route.words[0]!, "passes", one.index)} aria-current={one === chosen ? "true" : undefined}>{one.name}</a>
                    {one.changed && <span class="mark change">changed</span>}
                    {!one.ended && <span class="mark bad">did not end</span>}
                  </td>
                  <td class="number">{one.wall_ms?.toFixed(2) ?? "–"}</td>
                  {pairs && <td>{stateOf(states.get(one.index)?.state)}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <PassView pass={chosen} both={states.get(chosen.index)?.diff} />
      </div>
    </div>
  )
}

function stateOf(state: string | undefined) {
  return state === "diverges" || state === "differs" ? <span class={`mark ${state === "diverges" ? "bad" : "doubt"}`}>{state}</span> : state ?? "only here"
}

function Pairs({ pairs }: { pairs: PassPairs }) {
  const options: [string, string | null, string | null][] = [...pairs.constants, ...pairs.options]
  return (
    <div class="verdict">
      {pairs.verdict.map((one) => <p key={one}>{one}</p>)}
      {options.length > 0 && <Facts rows={options} sides={["a", "b"]} />}
    </div>
  )
}

function PassView({ pass, both }: { pass: Pass; both?: string }) {
  const [before, after] = pass.operations
  const [side, change] = useState(false) // the diff of both runs is shown
  const diff = side && both ? both : pass.diff
  return (
    <section class="pass" aria-label={`Pass ${pass.name}`}>
      <h3>{pass.index} {pass.name} <small>{pass.adder}({pass.arguments.join(", ")})</small></h3>
      <p>
        {plural(before, "operation")} before{after !== null && <>, {after} after</>}
        {pass.changes.length > 0 && <>: {pass.changes.map(([name, x, y]) => (
          <span key={name} class="change-count"><code>{name}</code> {x} → {y}</span>
        ))}</>}
      </p>
      {both && (
        <div class="toggles" role="group" aria-label="Which diff">
          <button type="button" aria-pressed={!side} onClick={() => change(false)}>before | after</button>
          <button type="button" aria-pressed={side} onClick={() => change(true)}>a | b after the pass</button>
        </div>
      )}
      {diff ? <Code text={diff} language="diff" label={`Diff of pass ${pass.name}`} />
        : <p class="waiting">{!pass.ended ? "The pass did not end: there is no IR after it." : pass.changed ? "Only locations or the names of values changed." : "The pass changed nothing."}</p>}
    </section>
  )
}
