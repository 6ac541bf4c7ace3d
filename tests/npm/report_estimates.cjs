/* report_estimates.cjs: which times the page marks as estimates, and which as not measured:
 * report_estimates.cjs PAGE LINES, where LINES is what `tapescope top --json -n 0` says. Prints what is
 * wrong, or "estimates: ok". */
const { browse, open, ready } = require('./browse.cjs')
const { pathToFileURL } = require('url')

const [file, lines] = process.argv.slice(2)
const failures = []

function check(good, text) {
    if (!good) failures.push(text)
}

/* A dash, "~" or "": how a line's time in this phase must begin. */
const markOf = (row, phase) => (row[`${phase}_ns`] === null ? '–' : row[`estimated_${phase}_ns`] > 0 ? '~' : '')

/* What stands in a cell, against the mark. */
const begins = (text, mark) => (mark === '–' ? text === '–' : mark === '~' ? text.startsWith('~') : /^([0-9]|$)/.test(text))

function compare(where, wanted, found) {
    for (const [key, row] of wanted)
        for (const phase of ['forward', 'backward']) {
            const text = found.get(key)?.[phase]
            check(text !== undefined && begins(text, markOf(row, phase)), `${where}: ${key}: ${phase} is '${text}', and must begin with '${markOf(row, phase)}'`)
        }
}

/* [[key, {title: text}]] of a table's rows. */
const cellsOf = table => table.evaluate(one => {
    const heads = [...one.querySelectorAll('th')].map(head => head.textContent)
    return [...one.querySelectorAll('tbody tr')].map(row => [row.querySelector('.key').textContent,
        Object.fromEntries([...row.cells].map((cell, i) => [heads[i], cell.querySelector('.v')?.textContent ?? '']))])
})

browse(pathToFileURL(file).href, async page => {
    await ready(page)
    const rows = JSON.parse(require('fs').readFileSync(lines, 'utf8')).rows.filter(row => row.file)
    const wanted = new Map(rows.map(row => [`${row.file.split('/').pop()}:${row.line}`, row]))
    const marks = new Set(rows.flatMap(row => ['forward', 'backward'].map(phase => markOf(row, phase))))
    check(marks.size === 3, `the profile has only '${[...marks].join("', '")}'`)
    await open(page, 'view=summary')
    compare('summary', wanted, new Map(await cellsOf(page.locator('.table-wrap[aria-label="Lines by cost"] table'))))
    const ratio = await page.locator('.tile:has-text("Backward ÷ forward") b, .tile:has-text("Backward ÷ forward") .value').first().innerText()
    check(ratio.startsWith('~'), `the ratio of all is '${ratio}'`)
    for (const [metric, note] of [['backward', true], ['tape', false]]) {
        await open(page, `view=flame&metric=${metric}`)
        const said = await page.locator('main .note').first().innerText()
        check(said.includes('Times of statements are estimates') === note, `flame, ${metric}: '${said}'`)
    }
    await open(page, 'view=source')
    const source = await page.locator('.source').evaluate(one => {
        const cells = row => [...row.querySelectorAll('.g')].map(cell => cell.textContent)
        const heads = cells(one.querySelector('.src.head'))
        return [...one.querySelectorAll('.src.cost')].map(row => [row.dataset.line, Object.fromEntries(cells(row).map((text, i) => [heads[i], text]))])
    })
    const prefix = [...wanted.keys()][0].replace(/\d+$/, '')
    compare('source', wanted, new Map(source.map(([line, cells]) => [prefix + line, cells])))
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('estimates: ok')
    else process.exitCode = 1
})
