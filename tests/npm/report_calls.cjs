/* report_calls.cjs: calls and loop bodies of the page's What-if, and a forward time that is not known:
 * report_calls.cjs PAGE ANSWER, where ANSWER is what `tapescope whatif --json` says. Prints what is
 * wrong, or "calls: ok". */
const { browse, open } = require('./browse.cjs')
const { pathToFileURL } = require('url')

const [file, answer] = process.argv.slice(2)
const { calls, run_ns: run } = JSON.parse(require('fs').readFileSync(answer, 'utf8'))
const failures = []

browse(pathToFileURL(file).href, async page => {
    await page.waitForSelector('html[data-ready]')
    await open(page, 'view=whatif')
    const rows = await page.locator('.table-wrap[aria-label="Calls and loop bodies"] tbody tr').evaluateAll(all =>
        all.map(row => [...row.cells].map(cell => cell.querySelector('.v').textContent.replace(/\u202f/g, ' '))))
    if (rows.length !== calls.length || rows.length < 2) failures.push(`${rows.length} rows, not ${calls.length}`)
    for (const call of calls) {
        const kib = `${(call.peak_bytes / 1024).toPrecision(3)} KiB`
        const part = 100 * call.recompute_ns / run // of a short run it may be more than all
        const cost = call.recompute_ns === null ? /^–$/ : new RegExp(`^~?[\\d.]+ (ns|µs|ms|s) \\(${part.toFixed(part < 99.95 ? 1 : 0)} %\\)$`)
        const found = rows.find(([best, what, as, peak, , more, inOut]) => best === (call.pareto ? '★' : '') &&
            what.startsWith(call.callee ?? `${call.file.split('/').pop()}:${call.line}`) && as === call.call && peak === kib &&
            cost.test(more) && inOut === `${call.inputs}, ${call.outputs}`)
        if (!found) failures.push(`no row has ${JSON.stringify(call)} ${kib}: ${JSON.stringify(rows)}`)
    }
    await open(page, 'view=summary')
    const forward = await page.locator('.tile:has-text("Forward") .value').first().innerText()
    if (forward !== '–') failures.push(`forward, which is not known, is '${forward}'`)
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('calls: ok')
    else process.exitCode = 1
})
