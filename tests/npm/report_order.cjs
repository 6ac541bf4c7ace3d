/* report_order.cjs: which of many lines the page shows first: report_order.cjs PAGE LINES, where LINES
 * is a file with [{key, file, ops, forward, backward, tape, peak, calls}], what lines cost by the
 * command. Prints what is wrong, or "order: ok". */
const { browse, open, ready } = require('./browse.cjs')
const { pathToFileURL } = require('url')

const [file, expected] = process.argv.slice(2)
const failures = []

function check(good, text) {
    if (!good) failures.push(text)
}

/* Of all lines by key: several ops of a line are one row. */
function merged(lines) {
    const rows = new Map()
    for (const { key, ops, ...costs } of lines) {
        if (!rows.has(key)) rows.set(key, { ops: new Set() })
        const row = rows.get(key)
        for (const op of ops) row.ops.add(op)
        for (const [name, value] of Object.entries(costs)) row[name] = (row[name] ?? 0) + value
    }
    return rows
}

const descends = values => values.every((value, i) => i === 0 || values[i - 1] >= value)

browse(pathToFileURL(file).href, async page => {
    await ready(page)
    const rows = merged(JSON.parse(require('fs').readFileSync(expected, 'utf8')))
    check(rows.size > 1200, `there are ${rows.size} lines only`)
    await everyOrderIsTheCommands(page, rows)
    await everyLineIsThere(page, rows)
    await theDearestOfTheFile(page, rows)
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('order: ok')
    else process.exitCode = 1
})

const keysOf = page => page.locator('tbody .where .key').allInnerTexts()

/* Whether these rows may be the first by a value. */
function areFirst(rows, keys, value, sign, where) {
    const all = [...rows.values()].map(row => sign * value(row)).sort((a, b) => b - a)
    const shown = keys.map(key => sign * value(rows.get(key)))
    check(new Set(keys).size === keys.length, `${where}: a line is there twice`)
    check(descends(shown), `${where}: not in order`)
    check(shown.join() === all.slice(0, keys.length).join(), `${where}: others come first`)
}

const VALUES = { forward: row => row.forward, backward: row => row.backward, tape: row => row.tape, 'at peak': row => row.peak, calls: row => row.calls, 'b/f': row => (row.forward > 0 ? row.backward / row.forward : 0) }

async function everyOrderIsTheCommands(page, rows) {
    await open(page, 'view=summary')
    for (const [title, value] of Object.entries(VALUES))
        for (const sign of [1, -1]) {
            const head = page.locator(`th button:text-is("${title}")`)
            await head.click()
            const keys = await keysOf(page)
            check(keys.length === 200, `${title}: ${keys.length} lines are shown, not 200`)
            areFirst(rows, keys, value, sign, `${title} ${sign > 0 ? 'downwards' : 'upwards'}`)
        }
}

async function everyLineIsThere(page, rows) {
    await page.locator('th button:text-is("calls")').click()
    check((await page.locator('.load').innerText()) === `${rows.size - 200} more`, 'another number of lines is left')
    while (await page.locator('.load').count()) await page.locator('.load').click()
    const keys = await keysOf(page)
    check(keys.slice().sort().join() === [...rows.keys()].sort().join(), 'not every line is there')
    areFirst(rows, keys, VALUES.calls, 1, 'all lines')
    const ops = await page.locator('tbody .where').evaluateAll(all => all.map(one => [one.querySelector('.key').textContent, one.querySelector('.op')?.textContent ?? '']))
    for (const [key, text] of ops)
        if (text) check(text === [...rows.get(key).ops].join(', '), `${key} has ${text}`)
    check(ops.some(([, text]) => text.includes(', ')), 'no line has two ops')
}

/* The source view names eight lines of the file. */
async function theDearestOfTheFile(page, rows) {
    const within = new Map([...rows].filter(([key]) => /:\d+$/.test(key)))
    for (const metric of ['tape', 'calls']) {
        await open(page, `view=source&metric=${metric}`)
        const names = await page.locator('.files h2:last-of-type ~ .file span:first-child').allInnerTexts()
        const prefix = [...within.keys()][0].replace(/\d+$/, '')
        check(names.length === 8, `${names.length} lines are named by ${metric}, not 8`)
        areFirst(within, names.map(name => prefix + parseInt(name, 10)), row => row[metric], 1, `source by ${metric}`)
    }
}
