// Which lines of one stage belong to a line of another: those with a Python call stack in common.
import type { KernelContent, Stage } from "./data"

export interface Links {
  /** Lines of each stage, in order, that belong to a line of one stage. */
  linked: (stage: string, line: number) => Map<string, number[]>
  /** The Python lines that a line comes from, innermost first, one call stack each. */
  origins: (stage: string, line: number) => string[]
}

export function linksOf(content: KernelContent): Links {
  const sets = new Map(content.stages.map((one) => [one.stage, setsOf(one)]))
  const innermost = (stack: number) => content.stacks[stack]![0]!

  const stacksOf = (stage: string, line: number) => content.sets[sets.get(stage)?.get(line) ?? -1] ?? []

  const linked = (stage: string, line: number) => {
    const stacks = new Set(stacksOf(stage, line))
    const frames = new Set([...stacks].map(innermost))
    const every = new Set([...stacks].flatMap((one) => content.stacks[one]!))
    const belonging = new Map<string, number[]>([[stage, [line]]])
    if (!stacks.size) return belonging
    for (const [name, lines] of sets) {
      if (name === stage) continue
      // Python: any line on the call path, and from there any code that names it. Else the same call path; a
      // stage that names no call sites has the innermost line only.
      const belongs = (set: number): boolean => {
        const theirs = content.sets[set]!
        if (name === "python") return theirs.some((one) => every.has(innermost(one)))
        if (stage === "python") return theirs.some((one) => content.stacks[one]!.some((frame) => frames.has(frame)))
        return theirs.some((one) => stacks.has(one))
      }
      let lineNumbers = pick(lines, belongs)
      if (!lineNumbers.length && name !== "python" && stage !== "python")
        lineNumbers = pick(lines, (set) => content.sets[set]!.some((one) => frames.has(innermost(one))))
      if (lineNumbers.length) belonging.set(name, lineNumbers)
    }
    return belonging
  }

  const origins = (stage: string, line: number) =>
    stacksOf(stage, line).map((stack) => content.stacks[stack]!.map((frame) => content.frames[frame]!.join(":")).join(" ← "))

  return { linked, origins }
}

function setsOf(stage: Stage): Map<number, number> {
  const sets = new Map<number, number>()
  for (let n = 0; n < stage.links.length; n += 2) sets.set(stage.links[n]!, stage.links[n + 1]!)
  return sets
}

function pick(lines: Map<number, number>, belongs: (set: number) => boolean): number[] {
  const answers = new Map<number, boolean>() // a set is asked once
  const picked: number[] = []
  for (const [line, set] of lines) {
    if (!answers.has(set)) answers.set(set, belongs(set))
    if (answers.get(set)) picked.push(line)
  }
  return picked.sort((a, b) => a - b)
}
