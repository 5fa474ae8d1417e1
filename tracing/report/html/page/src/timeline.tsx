// All launches of a run in launch order, a lane for each rank and stream; those with marks stand out.
import { useEffect, useRef } from "preact/hooks"
import { type Columns, DIVERGES, INF, NAN } from "./data"

const LANE = 22 // pixels

export function Timeline({ columns, streams, selected, onOpen }: {
  columns: Columns
  streams: number[]
  selected: number // a row of the columns; -1: none
  onOpen: (row: number) => void
}) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const lanes = lanesOf(columns)
  const count = columns.index.length
  useEffect(() => {
    const paint = () => draw(canvas.current!, columns, lanes, selected)
    const observer = new ResizeObserver(paint)
    observer.observe(canvas.current!)
    const scheme = matchMedia("(prefers-color-scheme: dark)")
    scheme.addEventListener("change", paint)
    document.addEventListener("theme", paint)
    return () => {
      observer.disconnect()
      scheme.removeEventListener("change", paint)
      document.removeEventListener("theme", paint)
    }
  }, [columns, selected])
  const open = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect()
    onOpen(nearest(columns, Math.floor(((event.clientX - box.left) / box.width) * count), Math.ceil((4 / box.width) * count)))
  }
  return (
    <figure class="timeline">
      <figcaption>
        Launches in launch order, left to right{lanes.size > 1 && <>; lanes from top to bottom: {[...lanes.keys()].map((key) => `rank ${Math.floor(key / STREAMS)} stream ${streams[key % STREAMS]}`).join(", ")}</>}.
        <span class="mark bad">diverges</span><span class="mark doubt">NaN or inf</span>
      </figcaption>
      <canvas ref={canvas} role="img" aria-label={`${count} launches; the table below lists them`}
        style={{ height: `${Math.min(12, lanes.size) * LANE + 4}px` }} onClick={open}></canvas>
    </figure>
  )
}

const STREAMS = 1 << 20 // more than a process has

/** The lane of each rank and stream. */
function lanesOf(columns: Columns): Map<number, number> {
  const keys = new Set<number>()
  for (let row = 0; row < columns.index.length; row++) keys.add(keyOf(columns, row))
  return new Map([...keys].sort((a, b) => a - b).map((key, lane) => [key, lane]))
}

function keyOf(columns: Columns, row: number): number {
  return columns.rank[row]! * STREAMS + columns.stream[row]!
}

/** The row near a position that has a mark, or else the row there. */
function nearest(columns: Columns, row: number, reach: number): number {
  const last = columns.index.length - 1
  for (let distance = 0; distance <= reach; distance++)
    for (const one of [row - distance, row + distance])
      if ((columns.flags[one] ?? 0) & (DIVERGES | NAN | INF)) return one
  return Math.min(last, Math.max(0, row))
}

function draw(canvas: HTMLCanvasElement, columns: Columns, lanes: Map<number, number>, selected: number) {
  const scale = devicePixelRatio || 1
  const [width, height] = [canvas.clientWidth, canvas.clientHeight]
  canvas.width = width * scale
  canvas.height = height * scale
  const pen = canvas.getContext("2d")!
  pen.scale(scale, scale)
  const style = getComputedStyle(canvas)
  const colour = (name: string) => style.getPropertyValue(name)
  const count = columns.index.length
  const lane = (row: number) => lanes.get(keyOf(columns, row))!
  const at = (row: number) => (row / count) * width
  const size = Math.max(1, width / count - (width / count > 4 ? 1 : 0))
  const filled = new Uint8Array(Math.ceil(width + 1) * lanes.size)
  pen.fillStyle = colour("--bar")
  for (let row = 0; row < count; row++) {
    const cell = Math.floor(at(row)) * lanes.size + lane(row)
    if (width < count && filled[cell]) continue // one bar for all launches of a pixel
    filled[cell] = 1
    pen.fillRect(at(row), lane(row) * LANE + 4, size, LANE - 8)
  }
  for (const [bits, name] of [[NAN | INF, "--doubt"], [DIVERGES, "--bad"]] as const) {
    pen.fillStyle = colour(name)
    for (let row = 0; row < count; row++) if (columns.flags[row]! & bits) pen.fillRect(at(row), lane(row) * LANE + 1, Math.max(size, 3), LANE - 2)
  }
  if (selected >= 0) {
    pen.strokeStyle = colour("--text")
    pen.lineWidth = 1.5
    pen.strokeRect(at(selected) - 1.5, 1, Math.max(size, 3) + 3, height - 2)
  }
}
