// A table of any length: only the rows in view are in the document.
import { Component, type ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"

export const ROW = 28 // pixels; an element may be 17 million pixels high in Firefox, 33 million in Chromium

export interface RowColumn {
  title: string
  width: string // of CSS grid
  numeric?: boolean
}

/** Rows 0 to count; the arrow keys move the selection, Enter opens it. */
export function Rows({ count, columns, cells, selected, onOpen, label }: {
  count: number
  columns: RowColumn[]
  cells: (row: number) => ComponentChildren[]
  selected: number // -1: none
  onOpen: (row: number) => void
  label: string
}) {
  const box = useRef<HTMLDivElement>(null)
  const [view, look] = useState({ top: 0, height: 600 })
  const [cursor, move] = useState(Math.max(0, selected))
  useEffect(() => {
    const element = box.current!
    const measure = () => look({ top: element.scrollTop, height: element.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  useEffect(() => { if (selected >= 0) { move(selected); reveal(box.current!, selected) } }, [selected])

  const first = Math.max(0, Math.floor(view.top / ROW) - 6)
  const last = Math.min(count, Math.ceil((view.top + view.height) / ROW) + 6)
  const template = columns.map((one) => one.width).join(" ")
  const onKey = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(view.height / ROW) - 2)
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count }
    if (event.key === "Enter") onOpen(cursor)
    const step = steps[event.key]
    if (step === undefined) return
    event.preventDefault()
    const row = Math.min(count - 1, Math.max(0, cursor + step))
    move(row)
    reveal(box.current!, row)
  }
  return (
    <div class="rows" role="grid" aria-label={label} aria-rowcount={count + 1} tabIndex={0} ref={box} onKeyDown={onKey}
      aria-activedescendant={cursor >= first && cursor < last ? `row-${cursor}` : undefined}
      onScroll={() => look((known) => ({ ...known, top: box.current!.scrollTop }))}>
      <div class="row head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {columns.map((one) => <span role="columnheader" key={one.title} class={one.numeric ? "number" : ""}>{one.title}</span>)}
      </div>
      <div class="space" role="rowgroup" style={{ height: `${count * ROW}px` }}>
        {Array.from({ length: Math.max(0, last - first) }, (_, n) => first + n).map((row) => (
          <Row key={row} row={row} mark={`${row === selected ? " selected" : ""}${row === cursor ? " cursor" : ""}`}
            template={template} columns={columns} cells={cells} onOpen={() => { move(row); onOpen(row) }} />
        ))}
      </div>
    </div>
  )
}

interface RowProps {
  row: number
  mark: string // " selected cursor"
  template: string
  columns: RowColumn[]
  cells: (row: number) => ComponentChildren[]
  onOpen: () => void
}

/** While a person scrolls, only rows that come into view are rendered. */
class Row extends Component<RowProps> {
  shouldComponentUpdate(next: RowProps) {
    return next.cells !== this.props.cells || next.mark !== this.props.mark || next.template !== this.props.template
  }

  render({ row, mark, template, columns, cells, onOpen }: RowProps) {
    return (
      <div id={`row-${row}`} role="row" aria-rowindex={row + 2} aria-selected={mark.includes("selected")} class={`row${mark}`}
        style={{ transform: `translateY(${row * ROW}px)`, gridTemplateColumns: template }} onClick={onOpen}>
        {cells(row).map((one, n) => <span role="gridcell" key={n} class={columns[n]!.numeric ? "number" : ""}>{one}</span>)}
      </div>
    )
  }
}

function reveal(box: HTMLElement, row: number) {
  const [top, bottom] = [row * ROW, (row + 2) * ROW] // the head hides the first row of the view
  if (top < box.scrollTop) box.scrollTop = top
  else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight
}
