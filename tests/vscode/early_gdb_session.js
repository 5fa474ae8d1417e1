// Drives vscode/extension/early_gdb.js as VSCode does: node early_gdb_session.js EXTENSION SESSION_FILE
const Module = require("module");
const { createConnection } = require("net");
const { readFileSync } = require("fs");

class DebugAdapterExecutable {}
class DebugAdapterNamedPipeServer {
    constructor(path) {
        this.path = path;
    }
}
const vscode = { DebugAdapterExecutable, DebugAdapterNamedPipeServer, debug: { activeDebugConsole: { append() {} } } };
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

const [, , extension, file] = process.argv;
const { earlyGdb } = require(`${extension}/early_gdb.js`);
const program = { id: "1", type: "debugpy", configuration: { request: "launch", env: { TRACING_STOP_SESSION: file } } };
const requested = { configuration: JSON.parse(readFileSync(file, "utf8")) };
const other = { configuration: { ...requested.configuration, commands: ["other"] } };
const adapter = (session) => earlyGdb.createDebugAdapterDescriptor(session);

function answered(path, text) {
    return new Promise((resolve, reject) => {
        const socket = createConnection(path, () => socket.write(text));
        socket.on("error", reject);
        socket.on("data", (answer) => resolve(`${answer}`) || socket.destroy());
    });
}

(async () => {
    earlyGdb.started({ ...program, configuration: { request: "attach", env: program.configuration.env } });
    const ofSubprocess = await adapter(requested);
    earlyGdb.started(program);
    const ofOthers = await adapter(other);
    const ready = await adapter(requested);
    const answer = await answered(ready.path, "initialize");
    const second = await adapter(requested);
    earlyGdb.started(program);
    earlyGdb.ended({ id: "2" });
    earlyGdb.ended(program);
    const afterStop = await adapter(requested);
    const kinds = { ofSubprocess, ofOthers, ready, second, afterStop };
    const names = Object.entries(kinds).map(([key, one]) => [key, one.constructor.name]);
    console.log(JSON.stringify({ ...Object.fromEntries(names), answer }));
})();
