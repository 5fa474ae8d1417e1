// A pane of code: read only, searchable, with lines that are marked from outside.
import { defaultKeymap } from "@codemirror/commands"
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search"
import { EditorState, RangeSetBuilder, StateEffect, StateField, type Text } from "@codemirror/state"
import { Decoration, type DecorationSet, EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view"
import { useEffect, useRef } from "preact/hooks"
import { coloured } from "./languages"

const mark = StateEffect.define<number[]>() // numbers of lines, in order
const linked = Decoration.line({ class: "linked" })

const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    for (const effect of transaction.effects) if (effect.is(mark)) return lines(transaction.newDoc, effect.value)
    return value
  },
  provide: (field) => EditorView.decorations.from(field),
})

function lines(doc: Text, numbers: number[]): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>()
  for (const one of numbers) if (one <= doc.lines) builder.add(doc.line(one).from, doc.line(one).from, linked)
  return builder.finish()
}

const DIFF: Record<string, Decoration> = {
  "+": Decoration.line({ class: "added" }),
  "-": Decoration.line({ class: "removed" }),
  "@": Decoration.line({ class: "hunk" }),
}

// of the lines in view only: a diff can have thousands
const diffLines = EditorView.decorations.of((view) => {
  const builder = new RangeSetBuilder<Decoration>()
  for (const { from, to } of view.visibleRanges)
    for (let at = from; at <= to; ) {
      const line = view.state.doc.lineAt(at)
      const title = line.number < 3 && /^(?:---|\+\+\+) /.test(line.text)
      const decoration = DIFF[title ? "@" : line.text[0] ?? ""]
      if (decoration) builder.add(line.from, line.from, decoration)
      at = line.to + 1
    }
  return builder.finish()
})

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "12px", backgroundColor: "var(--surface)", color: "var(--text)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--active)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--selection)" },
})

/** A text whose line under the cursor is reported, and whose `marks` are coloured and scrolled to. */
export function Code({ text, language, label, first = 1, marks = [], onLine }: {
  text: string
  language: string
  label: string
  first?: number // number of the first line
  marks?: number[] // lines of the text, from 1
  onLine?: (line: number) => void // 0: the pane lost the line
}) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>()
  const report = useRef(onLine)
  report.current = onLine
  useEffect(() => {
    const state = EditorState.create({
      doc: text,
      extensions: [
        EditorState.readOnly.of(true),
        EditorView.cspNonce.of("code"),
        EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true", spellcheck: "false", tabindex: "0" }),
        lineNumbers({ formatNumber: (line) => String(line + first - 1) }),
        drawSelection(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        search({ top: true }),
        keymap.of([...searchKeymap, ...defaultKeymap]),
        ...coloured(language),
        ...(language === "diff" ? [diffLines] : []),
        marked,
        look,
        EditorView.updateListener.of((update) => {
          // the user moved the cursor; not a program that scrolls
          if (update.selectionSet && update.transactions.some((one) => one.isUserEvent("select")))
            report.current?.(update.state.doc.lineAt(update.state.selection.main.head).number)
        }),
      ],
    })
    view.current = new EditorView({ state, parent: host.current! })
    return () => view.current?.destroy()
  }, [text, language, label, first])
  useEffect(() => {
    const one = view.current
    if (!one) return
    const target = marks[0]
    const seen = target !== undefined && marks.some((line) => inView(one, line))
    const scroll = target !== undefined && !seen && target <= one.state.doc.lines
      ? [EditorView.scrollIntoView(one.state.doc.line(target).from, { y: "center" })]
      : []
    one.dispatch({ effects: [mark.of(marks), ...scroll] })
  }, [marks, text])
  return <div class="code" ref={host} data-language={language}></div>
}

function inView(view: EditorView, line: number): boolean {
  if (line > view.state.doc.lines) return false
  const box = view.scrollDOM
  const top = view.lineBlockAt(view.state.doc.line(line).from).top
  return top >= box.scrollTop && top < box.scrollTop + box.clientHeight - 20
}
