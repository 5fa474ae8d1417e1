// What a report holds, as tracing/report/html writes it, and how its chunks are decoded.
import { decompress } from "fzstd"

export interface Finding {
  tone: "bad" | "doubt" | "fine"
  title: string
  lines: string[]
  next: string[]
  launch: [number, number, number] | null // run, rank, index
  kernel: [number, number] | null // run, position
  divergence: number | null
  answer: [number, number] | null // run, number
}

export interface KernelRow {
  name: string
  label: string
  hash: string
  target: string
  kind: string
  num_warps: number | string
  num_stages: number | string
  file: string | null
  constants: Record<string, string>
  launches: number
  wall_us: number
  device_us: number
  flags: number
  passes: number
  changed: number
  pass_ms: number
  died: string | null
  stages: string[]
  next: string[]
  chunk: number
}

export interface Frame {
  compile_id: string
  function: string
  python: string
  operators: number
  guards: { code: string; python: string }[]
  breaks: { reason: string; python: string; line: string }[]
  failed: { compile_id: string; code: string }[]
  eager: string
}

/** What a command answered about a run, kept in the run: a record of tracing/model/answers.py. */
export interface KeptAnswer {
  name: string
  command: string
  version: string
  asked: string
  status: number
  lines: string[]
  next: string[]
  rank: number
  launch: number | null
  kernel: string
  tables: { title: string; columns: string[]; rows: string[][] }[]
  bars: { title: string; unit: string; bars: [string, number][] }[]
  heat: { title: string; cells: (number | null)[][] }[]
}

export interface RunData {
  name: string
  path: string
  case: string
  case_path: string
  kind: string
  program: string[]
  started: string
  status: string
  device: string
  target: string
  torch: string
  triton: string
  python: string
  host: string
  platform: string
  seed: number | null
  world_size: number
  constraints: Record<string, { violated: number; undecided: number }>
  recorded: Record<string, string>
  knobs: Record<string, string>
  variables: [string, string][]
  not_covered: { what: string; setting: string }[]
  cut: string[]
  outcomes: { status: string; detail: string; traceback: string }[]
  failures: { kind: string; name: string; reason: string; python: string; source: string[] }[]
  evidence: { rank: number; launch: number; text: string }[]
  perturbed: { what: string; how: string; why_not: string }[]
  results: { rank: number; name: string; value: string }[]
  winners: { kernel: string; tuner: string; key: string[]; agreed: boolean; by_rank: Record<string, Record<string, unknown>> }[]
  violations: { constraint: string; node: string; operator: string; found: string; required: string; decided: boolean; python: string; code: string }[]
  frames: Frame[]
  answers: KeptAnswer[]
  nan: { unknown: string[]; chain: { kind: string; index: number; name: string; rank: number }[] }
  next: string[]
  show: string
  kernels: KernelRow[]
  launches: { count: number; block: number; columns: number; blocks: number[]; streams: number[]; sites: string[] }
}

export interface Producers {
  nodes: { kind: "launch" | "operator"; index: number; name: string }[]
  edges: { writer: number; reader: number; argument: string }[]
  cut: boolean
  run: number
  rank: number
}

export interface Divergence {
  kind: string
  rank: number
  launch: { a: number | null; b: number | null }
  kernel: string
  argument: string | null
  site: string | null
  computes: string[]
  accused: { kind: string; name: string; argument: string | null; certain: boolean; decides: string | null; launch: { a: number | null; b: number | null } | null }
  evidence: string[]
  next: string[]
  a: string | Record<string, string> | null
  b: string | Record<string, string> | null
  diff?: string[]
  elements: string
  values: [number, unknown, unknown][]
  title: string
  ranges: { count: number; ranges: [number, number][] } | null
  producers: Producers | null
}

export interface Difference {
  name: string
  rank: number
  a: string
  b: string
}

export interface KernelPair {
  a: string
  b: string
  name: string
  equal: boolean
  known: boolean
  chunk: number | null
}

export interface Comparison {
  status: number
  divergences: Divergence[]
  found: number
  results: Difference[]
  start: Difference[]
  outcomes: Difference[]
  summary: string[]
  not_compared: string[]
  kernels: KernelPair[]
}

export interface Table {
  status: number
  kernels: { name: string; differs: boolean; runs: ({ launches: number; code: number; values: number | null } | null)[] }[]
  compared: { status: number; found: number; first: string | null; next: string[] }[]
}

export interface Index {
  schema: number
  runs: RunData[] // of a table only what the first screen says of each
  comparison: Comparison | null
  findings: Finding[]
  table: Table | null // of more than two runs
}

export interface Columns {
  rank: number[]
  index: number[]
  kernel: number[]
  stream: number[]
  phase: number[]
  step: number[]
  site: number[]
  flags: number[]
  wall_us: number[]
  device_us: number[]
}

type Argument = [name: string, role: string, tensor: string | null, layout: string | null, value: string | null, writer: string | null]
export type DigestRow = [bits: string, l1: number | null, nan: number, inf: number, negativeZero: number]

export interface LaunchBlock {
  rows: [grid: number[], thread: number, device: string, args: [number, number, number, number][], user: [Record<string, unknown>, Record<string, unknown>] | null][]
  arguments: Argument[]
  digests: DigestRow[]
}

export interface Stage {
  stage: string
  text: string
  note: string
  first: number
  links: number[] // line, set of stacks, line, set, ...
  file?: string
}

export interface Pass {
  index: number
  stage: string
  name: string
  adder: string
  arguments: string[]
  changed: boolean
  ended: boolean
  wall_ms: number | null
  operations: [number, number | null]
  changes: [string, number, number][]
  diff: string
}

export interface KernelContent {
  frames: [string, number][]
  stacks: number[][]
  sets: number[][]
  stages: Stage[]
  passes: Pass[]
  note: string
}

export interface PassPairs {
  equal: boolean
  entry_equal: boolean
  verdict: string[]
  constants: [string, string | null, string | null][]
  options: [string, string | null, string | null][]
  pairs: { a: number | null; b: number | null; stage: string; name: string; state: string; diff: string }[]
}

// Bits of the column `flags`.
export const NAN = 1
export const INF = 2
export const DIVERGES = 4
export const UNFINISHED = 8
export const EVIDENCE = 16

const parsed = new Promise<void>((resolve) => {
  if (document.readyState !== "loading") resolve()
  else document.addEventListener("DOMContentLoaded", () => resolve())
})

async function decode(element: HTMLElement): Promise<unknown> {
  const bytes = Uint8Array.from(atob(element.textContent ?? ""), (one) => one.charCodeAt(0))
  return JSON.parse(new TextDecoder().decode(decompress(bytes)))
}

/** The index, which is in the file before this program. */
export async function readIndex(): Promise<Index> {
  return readAny<Index>()
}

/** The index of any page of this project. */
export async function readAny<T>(): Promise<T> {
  return (await decode(document.getElementById("index")!)) as T
}

/** Takes the index and the chunks of a newer page; numbers of chunks mean other ones from now on. */
export function adopt(newer: Document): void {
  for (const old of document.querySelectorAll('script[type="text/plain"]')) old.remove()
  for (const one of newer.querySelectorAll('script[type="text/plain"]')) document.body.append(document.adoptNode(one))
  known.clear()
  adopted += 1
}

/** How often the data was replaced. */
export function generation(): number {
  return adopted
}

let adopted = 0
const KEPT = 24 // decoded chunks that are held in memory
const known = new Map<number, Promise<unknown>>()

/** A chunk by its number; the latest few stay decoded. */
export async function readChunk<T>(number: number): Promise<T> {
  let chunk = known.get(number)
  known.delete(number)
  chunk ??= (async () => {
    // the browser may not have read the file up to there yet
    if (!document.getElementById(`chunk-${number}`)) await parsed
    const element = document.getElementById(`chunk-${number}`)
    if (!element) throw new Error("the file ends early: this part of it is missing")
    return decode(element)
  })()
  known.set(number, chunk)
  if (known.size > KEPT) known.delete(known.keys().next().value!)
  return chunk as Promise<T>
}
