// A page that `tracing serve` serves: asks the server once a second whether there is a newer one.
import { useEffect, useState } from "preact/hooks"
import { adopt } from "./data"

const SECOND = 1000

const stamp = () => document.querySelector<HTMLMetaElement>('meta[name="tracing-stamp"]')

/** True if a server serves the page, so that it can ask for more; a file has nobody to ask. */
export const served = stamp() !== null

/** What the server answers; throws if it has ended, or refuses. */
export async function ask<T>(path: string, body?: unknown): Promise<T> {
  const answer = await fetch(path, body === undefined ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error((await answer.text()).trim())
  return (await answer.json()) as T
}

export interface Live {
  recording: boolean
  updated: Date | null
  failed: string
}

/** Calls `step` each second while the page is seen; gives the error of the last call, "" if it succeeded. */
export function useEachSecond(step: () => Promise<void>): string {
  const [failed, change] = useState("")
  useEffect(() => {
    let shown = true
    let timer = 0
    const next = async () => {
      try {
        if (!document.hidden) await step()
        if (shown) change("")
      } catch (error) {
        if (shown) change(error instanceof TypeError ? "The server has ended." : String((error as Error).message))
      }
      if (shown) timer = setTimeout(next, SECOND)
    }
    void next()
    return () => { shown = false; clearTimeout(timer) }
  }, [])
  return failed
}

/** Shows the page anew when its runs have grown; `renew` reads the data that was replaced. */
export function useLive(renew: () => Promise<void>): Live {
  const [live, change] = useState({ recording: stamp()?.content.includes("-recording") ?? false, updated: null as Date | null })
  const failed = useEachSecond(async () => {
    if (!served) return
    const now = await ask<{ stamp: string }>(`stamp${location.search}`)
    if (now.stamp === stamp()!.content) return
    const answer = await fetch(`report${location.search}`)
    if (!answer.ok) throw new Error((await answer.text()).trim())
    const newer = new DOMParser().parseFromString(await answer.text(), "text/html")
    const content = newer.querySelector<HTMLMetaElement>('meta[name="tracing-stamp"]')!.content
    adopt(newer)
    await renew()
    stamp()!.content = content // if the page could not be shown, it is asked for once more
    change({ recording: content.includes("-recording"), updated: new Date() })
  })
  return { ...live, failed }
}
