// The form that starts a case with its settings.
import { useState } from "preact/hooks"
import { ask } from "./live"

const DEVICES: [string, string][] = [["auto", "GPU, if there is one"], ["virtual", "virtual GPU"], ["cpu", "CPU, C++ kernels"]]
const LAYOUTS = ["", "contiguous", "channels_last"]

interface Settings {
  case: string
  options: string
  device: string
  target: string
  seed: string
  mode: string
  judge: boolean
  checked: string // "": it is recorded; else checked against constraints
  alignment: string
  dtypes: string
  max_memory: string
  layout: string
  unsupported: string
  accelerator: string
}

export function StartForm({ cases, onStarted }: { cases: { name: string; says: string }[]; onStarted: () => Promise<void> }) {
  const [one, set] = useState<Settings>({
    case: cases.some((each) => each.name === "silu") ? "silu" : cases[0]?.name ?? "", options: "", device: "auto", target: "", seed: "0", mode: "", judge: false,
    checked: "", alignment: "", dtypes: "", max_memory: "", layout: "", unsupported: "", accelerator: "",
  })
  const [refused, refuse] = useState("")
  const start = async (event: Event) => {
    event.preventDefault()
    try {
      await ask("start", requestOf(one))
      refuse("")
      await onStarted()
    } catch (error) {
      refuse(String((error as Error).message))
    }
  }
  const field = (name: keyof Settings, title: string, hint: string) => (
    <label>{title} <input value={String(one[name])} placeholder={hint} size={Math.max(10, hint.length)} onInput={(event) => set({ ...one, [name]: event.currentTarget.value })} /></label>
  )
  const choice = (name: keyof Settings, title: string, options: [string, string][]) => (
    <label>{title} <select value={String(one[name])} onChange={(event) => set({ ...one, [name]: event.currentTarget.value })}>
      {options.map(([value, shown]) => <option key={value} value={value}>{shown}</option>)}
    </select></label>
  )
  return (
    <form class="start" onSubmit={start} aria-label="Start a case">
      <h2>Start a case</h2>
      <div class="filters">
        {choice("case", "Case", cases.map((each) => [each.name, each.name]))}
        {field("options", "Options", "width=32,depth=2")}
        {field("target", "Target", "sm_90")}
        {field("seed", "Seed", "0")}
        {choice("checked", "To", [["", "record its launches"], ["yes", "check constraints"]])}
        {!one.checked && choice("device", "Device", DEVICES)}
        {!one.checked && field("mode", "Mode", "max-autotune")}
        {!one.checked && <label><input type="checkbox" checked={one.judge} onChange={() => set({ ...one, judge: !one.judge })} /> judge each kernel</label>}
        <button type="submit" class="primary">Start</button>
      </div>
      {one.checked && (
        <fieldset class="filters">
          <legend>Constraints of the accelerator; without any, the defaults of `tracing check`</legend>
          {field("alignment", "Sizes are multiples of", "8")}
          {field("dtypes", "Dtypes", "float16,float32")}
          {field("max_memory", "Largest tensor", "2GB")}
          {choice("layout", "Layout", LAYOUTS.map((each) => [each, each || "any"]))}
          {field("unsupported", "Unsupported operators", "aten.add,nn.Conv2d")}
          {field("accelerator", "Accelerator", "name")}
        </fieldset>
      )}
      <p class="notes">{cases.find((each) => each.name === one.case)?.says}</p>
      {refused && <p class="failed" role="alert">{refused}</p>}
    </form>
  )
}

function requestOf(one: Settings) {
  const { case: name, options, target, device, mode, judge, dtypes, max_memory, layout, unsupported, accelerator } = one
  const common = { case: name, options: options.trim(), target: target.trim(), seed: Number(one.seed) }
  if (!one.checked) return { ...common, device, mode: mode.trim(), judge }
  const alignment = one.alignment.trim() ? Number(one.alignment) : null
  return { ...common, constraints: { alignment, dtypes, max_memory, layout, unsupported, accelerator } }
}
