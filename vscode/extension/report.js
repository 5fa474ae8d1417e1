// Recorded runs in the page of `tracing report`, next to the source; a Python line of the page opens in the editor.
const { execFile } = require("child_process");
const fs = require("fs/promises");
const os = require("os");
const path = require("path");
const vscode = require("vscode");

// the Python and the checkout that `make vscode` wrote into the settings of a folder
function tool() {
    for (const folder of vscode.workspace.workspaceFolders || []) {
        const { python, root } = vscode.workspace.getConfiguration("triton-gdb", folder.uri);
        if (python && root) {
            return { python, cwd: root };
        }
    }
    throw new Error("no folder has the setting triton-gdb.python; `make vscode` writes it");
}

function tracing({ python, cwd }, words) {
    return new Promise((resolve) => {
        execFile(python, ["-m", ...words], { cwd }, (error, output, errors) => resolve({ error, output, errors }));
    });
}

async function chosenRuns(python) {
    const { error, output, errors } = await tracing(python, ["vscode.recorded", "run"]);
    if (error) {
        throw new Error(errors.trim() || error.message);
    }
    const known = JSON.parse(output);
    if (!known.length) {
        throw new Error("no run is recorded; `make run` records one");
    }
    const options = { canPickMany: true, placeHolder: "One run, or two that are shown side by side" };
    known[0].picked = true; // the newest
    const chosen = known.length === 1 ? known : await vscode.window.showQuickPick(known, options);
    return (chosen || []).map((one) => one.label).reverse(); // the older run is the one to compare with
}

async function page(python, runs) {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), "triton-report-"));
    const file = path.join(folder, "report.html");
    try {
        // the exit status tells only whether the runs differ
        const { errors } = await tracing(python, ["tracing", "report", ...runs, "--output", file]);
        return await fs.readFile(file, "utf8").catch(() => Promise.reject(new Error(errors.trim())));
    } finally {
        await fs.rm(folder, { recursive: true });
    }
}

let panel;

// A message of the page, which tracing/report/html/page/src/editor.ts sends.
async function openLine({ file, line, focus }) {
    const { One, Beside } = vscode.ViewColumn;
    try {
        const document = await vscode.workspace.openTextDocument(vscode.Uri.file(file));
        await vscode.window.showTextDocument(document, {
            viewColumn: panel.viewColumn === One ? Beside : One,
            selection: new vscode.Range(line - 1, 0, line - 1, 0),
            preserveFocus: !focus,
        });
    } catch (error) {
        vscode.window.showErrorMessage(error.message);
    }
}

function show(title, html) {
    if (!panel) {
        const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
        // the page's own Content-Security-Policy keeps it from loading or executing anything else
        const options = { enableScripts: true, retainContextWhenHidden: true, localResourceRoots: [] };
        panel = vscode.window.createWebviewPanel("triton-gdb.report", title, place, options);
        panel.onDidDispose(() => (panel = undefined));
        panel.webview.onDidReceiveMessage(openLine);
    }
    panel.title = title;
    panel.webview.html = html;
    panel.reveal(undefined, true);
}

// Returns the names of the runs, which the task prints; undefined if there is no report.
exports.openReport = async () => {
    try {
        const python = tool();
        const runs = await chosenRuns(python);
        if (!runs.length) {
            return undefined;
        }
        const title = `Report of ${runs.join(" and ")}`;
        const location = vscode.ProgressLocation.Notification;
        const html = await vscode.window.withProgress({ location, title }, () => page(python, runs));
        show(title, html);
        return runs.join(" ");
    } catch (error) {
        vscode.window.showErrorMessage(error.message);
        return undefined;
    }
};
