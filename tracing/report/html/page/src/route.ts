// Which view of which run is shown: a part of the address, so that a link or a reload leads back to it.
import { useLayoutEffect, useState } from "preact/hooks"

export interface Route {
  run: number
  view: string
  words: string[] // launch: rank, index; kernel: position, "code" or "passes", index of a pass; divergences: number
}

export function hrefOf(run: number, view: string, ...words: (string | number)[]): string {
  return `#${["ab"[run], view, ...words].join("/")}`
}

export function goTo(href: string): void {
  location.hash = href
}

/** What the address names, which may be newer than what is drawn. */
export function addressed(runs: number): Route {
  const [side, view, ...words] = decodeURIComponent(location.hash.slice(1)).split("/")
  return { run: side === "b" && runs > 1 ? 1 : 0, view: view || "overview", words }
}

export function useRoute(runs: number): Route {
  const [route, change] = useState(() => addressed(runs))
  // before the first view is seen: no change of the address is missed
  useLayoutEffect(() => {
    const changed = () => change(addressed(runs))
    addEventListener("hashchange", changed)
    return () => removeEventListener("hashchange", changed)
  }, [runs])
  return route
}
