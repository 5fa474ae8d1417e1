// Parts that several views share: commands to copy, facts, marks, tables, chunks that are being decoded.
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { DIVERGES, EVIDENCE, INF, NAN, type RunData, UNFINISHED, generation, readChunk } from "./data"
import { themeOfEditor } from "./editor"

/** A command with a button that copies it. */
export function Command({ text }: { text: string }) {
  const [copied, change] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      copyBySelection(text) // a file has no clipboard in some browsers
    }
    change(true)
    setTimeout(() => change(false), 1500)
  }
  return (
    <div class="command">
      <code>{text}</code>
      <button type="button" onClick={copy} aria-label={`Copy: ${text}`}>{copied ? "copied" : "copy"}</button>
    </div>
  )
}

function copyBySelection(text: string) {
  const area = document.createElement("textarea")
  area.value = text
  document.body.append(area)
  area.select()
  document.execCommand("copy")
  area.remove()
}

export function Commands({ list }: { list: string[] }) {
  if (!list.length) return null
  return (
    <section class="commands" aria-label="Commands to type next">
      <h3>Next</h3>
      {list.map((one) => <Command key={one} text={one} />)}
    </section>
  )
}

export type Fact = string | number | null | { key: string; shown: ComponentChildren }

/** Names and values, of one run or of several; rows whose values differ are marked. */
export function Facts({ rows, sides }: { rows: [string, ...Fact[]][]; sides?: string[] }) {
  return (
    <table class="facts">
      {sides && sides.length > 1 && (
        <thead><tr><td></td>{sides.map((one, n) => <th scope="col" key={one + n}>{one}</th>)}</tr></thead>
      )}
      <tbody>
        {rows.map(([name, ...values]) => {
          const differs = new Set(values.map((one) => String(one !== null && typeof one === "object" ? one.key : one))).size > 1
          return (
            <tr key={name} class={differs ? "differs" : ""}>
              <th scope="row">{name}{differs && <span class="mark bad"> differs</span>}</th>
              {values.map((one, n) => <td key={n}>{one !== null && typeof one === "object" ? one.shown : one ?? "–"}</td>)}
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

const MARKS: [number, string, string][] = [
  [DIVERGES, "diverges", "bad"],
  [NAN, "NaN", "doubt"],
  [INF, "inf", "doubt"],
  [EVIDENCE, "memory", "doubt"],
  [UNFINISHED, "did not finish", "bad"],
]

export function Marks({ flags }: { flags: number }) {
  return <>{MARKS.filter(([bit]) => flags & bit).map(([bit, word, tone]) => <span key={bit} class={`mark ${tone}`}>{word}</span>)}</>
}

/** A chunk once it is decoded; until then undefined, or a message in `failed`. */
export function useChunk<T>(number: number | null | undefined): { value?: T; failed?: string } {
  const [state, change] = useState<{ number?: number | null; of?: number; value?: T; failed?: string }>({})
  const of = generation()
  useEffect(() => {
    if (number === null || number === undefined) return
    let shown = true
    readChunk<T>(number).then(
      (value) => shown && change({ number, of, value }),
      (error) => shown && change({ number, of, failed: String(error.message ?? error) }),
    )
    return () => { shown = false }
  }, [number, of])
  // of a page that was replaced, the old chunk is shown until the new one is decoded: nothing flickers
  return state.number === number || (state.of !== undefined && state.of !== of) ? state : {}
}

/** A line of a file, "case.py:9", which opens in VSCode where its folder is known. */
export function Line({ at, run }: { at: string | null; run: RunData }) {
  const match = /^(.+):(\d+)(?: .*)?$/.exec(at ?? "")
  const file = match && pathOf(match[1]!, run)
  return file ? <a href={editorHref(file, Number(match[2]))} title="Open in VSCode">{at}</a> : <>{at ?? "–"}</>
}

function pathOf(file: string, run: RunData): string | null {
  if (file.startsWith("/")) return lasts(file) ? file : null
  // records name files of the case without their folder
  return run.case_path.startsWith("/") && run.case_path.endsWith(`/${file}`) ? run.case_path : null
}

/** False for what Inductor generated into the recorder's own cache, which is deleted with the recording. */
export function lasts(path: string): boolean {
  return !/\/tracing-\w+\/torchinductor\//.test(path)
}

/** The address by which VSCode opens a line. */
export function editorHref(path: string, line: number): string {
  return `vscode://file${path.split("/").map(encodeURIComponent).join("/")}:${line}`
}

export function Waiting({ failed }: { failed?: string }) {
  return failed ? <p class="failed" role="alert">{failed}</p> : <p class="waiting" role="status">Reading …</p>
}

export interface Column<Row> {
  title: string
  value: (row: Row) => string | number
  shown?: (row: Row) => ComponentChildren
  numeric?: boolean
}

/** A table that is sorted by the header that was pressed last. */
export function SortedTable<Row>({ rows, columns, label, keyOf }: {
  rows: Row[]
  columns: Column<Row>[]
  label: string
  keyOf: (row: Row) => string | number
}) {
  const [by, change] = useState<{ column: number; down: boolean } | null>(null)
  const sorted = by ? [...rows].sort(order(columns[by.column]!.value, by.down)) : rows
  return (
    <div class="scrolled" tabIndex={0} role="region" aria-label={label}>
      <table class="sorted">
        <thead>
          <tr>
            {columns.map((one, n) => (
              <th key={one.title} scope="col" class={one.numeric ? "number" : ""}
                aria-sort={by?.column === n ? (by.down ? "descending" : "ascending") : "none"}>
                <button type="button" onClick={() => change({ column: n, down: by?.column === n ? !by.down : Boolean(one.numeric) })}>
                  {one.title}<span aria-hidden="true">{by?.column === n ? (by.down ? " ↓" : " ↑") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((one) => <td key={one.title} class={one.numeric ? "number" : ""}>{one.shown ? one.shown(row) : one.value(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function order<Row>(value: (row: Row) => string | number, down: boolean) {
  return (a: Row, b: Row) => {
    const [x, y] = [value(a), value(b)]
    const result = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y))
    return down ? -result : result
  }
}

export function plural(count: number, noun: string): string {
  const ending = count === 1 ? "" : /(ch|s)$/.test(noun) ? "es" : "s"
  return `${count.toLocaleString("en")} ${noun}${ending}`
}

export function micros(value: number): string {
  return value < 0 ? "–" : value < 1000 ? `${value.toFixed(1)} µs` : `${(value / 1000).toFixed(2)} ms`
}

const THEMES = ["auto", "light", "dark"]

/** The choice of light and dark. */
export function Theme() {
  const [theme, change] = useState(themeOfEditor)
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme
    document.dispatchEvent(new Event("theme"))
  }, [theme])
  return (
    <label class="theme">Theme <select value={theme} onChange={(event) => change(event.currentTarget.value)}>
      {THEMES.map((one) => <option key={one}>{one}</option>)}
    </select></label>
  )
}
