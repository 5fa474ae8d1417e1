// The editor in whose webview the page is shown: it opens lines of files. A browser has none.
// vscode/extension/report.js receives the messages.
import { goTo } from "./route"

interface Api {
  postMessage: (message: { file: string; line: number; focus: boolean }) => void
}

declare const acquireVsCodeApi: (() => Api) | undefined

const api = typeof acquireVsCodeApi === "function" ? acquireVsCodeApi() : null

/** Shows a line next to the page; `focus`: and moves the cursor there. Nothing happens in a browser. */
export function reveal(file: string, line: number, focus: boolean): void {
  api?.postMessage({ file, line, focus })
}

/** The theme of the editor, "light" or "dark"; "auto" in a browser. */
export function themeOfEditor(): string {
  const kind = document.body.dataset["vscodeThemeKind"]
  return kind ? (kind.endsWith("light") ? "light" : "dark") : "auto"
}

/** A webview follows no link: not within the page, and none to a file. */
export function followLinks(): void {
  if (!api) return
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest("a")
    const href = link?.getAttribute("href") ?? ""
    const file = /^vscode:\/\/file(\/.+):(\d+)$/.exec(href)
    if (event.defaultPrevented || (!file && !href.startsWith("#"))) return
    event.preventDefault()
    event.stopPropagation() // the webview would look for an element of that name
    if (file) reveal(decodeURIComponent(file[1]!), Number(file[2]), true)
    else goTo(href)
  })
}
