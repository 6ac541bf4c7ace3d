/* report_lines.cjs: what the page works out by itself: report_lines.cjs PAGE QUESTIONS BYTE_SECONDS LINES,
 * where QUESTIONS is a file with choices of lines, or budgets, and the command's answers, and LINES
 * what `tapescope top --json` says. Prints what is wrong, or "lines: ok". */
const { browse, open: openOf } = require('./browse.cjs')
const { pathToFileURL } = require('url')

const [file, questions, byteSeconds, lines] = process.argv.slice(2)
const failures = []

function check(good, text) {
    if (!good) failures.push(text)
}

browse(pathToFileURL(file).href, async page => {
    page.on('console', message => {
        if (message.type() === 'error') failures.push(`console: ${message.text()}`)
    })
    await page.waitForSelector('html[data-ready]')
    const open = address => openOf(page, address)
    await everyAnswerIsTheCommands(page, JSON.parse(require('fs').readFileSync(questions, 'utf8')))
    await choicesSurvive(page)
    await byteSecondsAreTheProfiles(page, open)
    await linesAreTheCommands(page, open, JSON.parse(require('fs').readFileSync(lines, 'utf8')).rows)
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('lines: ok')
    else process.exitCode = 1
})

const none = '.tools button:has-text("None")'
const checked = page => page.locator('main tr:has(input:checked) .key').allInnerTexts()

async function shown(page) {
    await page.waitForFunction(() => !/Choosing/.test(document.querySelector('.said').textContent), null)
    const [peak, cost] = await page.locator('.said b[title]').evaluateAll(all => all.map(one => parseInt(one.title, 10)))
    return { peak, cost, lines: (await checked(page)).sort(), text: await page.locator('.said').innerText() }
}

async function everyAnswerIsTheCommands(page, asked) {
    await page.click('#tab-whatif')
    for (const { budget, picked, answer } of asked) {
        const name = budget ? `at most ${budget}` : picked.join(' ')
        if (budget) {
            await page.fill('#budget', budget)
            await page.click('button:has-text("Choose")')
        } else {
            if (await page.isVisible(none)) await page.click(none)
            for (const line of new Set(picked))
                await page.locator('main tr', { has: page.locator(`.key:text-is("${line}")`) }).locator('input').click()
        }
        const said = await shown(page)
        check(said.lines.join() === answer.lines.join(), `${name}: ${said.lines} are chosen, not ${answer.lines}`)
        if (answer.lines.length === 0) {
            check(said.text.includes('No line need be computed again'), `${name}: '${said.text}'`)
            continue
        }
        check(said.peak === answer.peak && said.cost === answer.cost, `${name}: ${said.peak} for ${said.cost}, not ${answer.peak} for ${answer.cost}`)
        if (!budget) continue
        const how = answer.fits ? (answer.optimal ? 'none that reaches it costs less' : 'a cheaper choice may exist') : 'No choice fits'
        check(said.text.includes(how), `${name}: '${said.text}' does not say '${how}'`)
    }
}

/* In the address: a reload shows the same; what is no size is said. */
async function choicesSurvive(page) {
    await page.fill('#budget', 'much')
    await page.keyboard.press('Enter')
    check(/no size/.test(await page.locator('.said').innerText()), 'a wrong size is not said')
    check((await page.getAttribute('#budget', 'aria-invalid')) === 'true', 'a wrong size is not marked')
    await page.click(none)
    check((await checked(page)).length === 0, 'None leaves lines')
    for (const i of [0, 1]) await page.locator('main td input').nth(i).click()
    check((await page.locator('main svg .dot.all').count()) === 1, 'the lines together are not in the picture')
    const before = await shown(page)
    check(before.lines.length === 2, 'two lines are not chosen')
    await page.reload()
    await page.waitForSelector('html[data-ready]')
    check(JSON.stringify(await shown(page)) === JSON.stringify(before), 'a reload shows another choice')
    await page.focus('main td input')
    await page.keyboard.press('Space')
    check((await page.locator('main td input:focus').count()) === 1, 'a check takes the focus away')
}

async function byteSecondsAreTheProfiles(page, open) {
    const want = Number(byteSeconds) * 1e9
    for (const mode of ['calls', 'inverted']) {
        await open(`view=flame&mode=${mode}&metric=lifetime`)
        const all = Number(await page.locator('[data-node="0"] .n').first().getAttribute('title'))
        check(Math.abs(all - want) <= 1e-9 * want, `flame ${mode}: ${all} byte-ns, not ${want}`)
    }
    await open('view=summary&metric=lifetime')
    check((await page.locator('th[aria-sort=descending]').innerText()).startsWith('byte-seconds'), 'the lines are not by byte-seconds')
    await open('view=source&metric=lifetime')
    check((await page.locator('.src.cost .lifetime .bar').count()) > 0, 'the source has no byte-seconds')
}

/* A figure with its unit, as far as its digits go. */
function says(text, value) {
    const units = { '': 1, '!': 1, ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9, B: 1, KiB: 1024, MiB: 1024 ** 2 }
    const [, digits, unit] = /^([\d.]*)\s*(\S*)$/.exec(text.replace(/\u202f/g, ' ')) ?? [null, 'NaN', '']
    return value ? Math.abs((Number(digits) * units[unit]) / value - 1) < 0.01 : /^[0·–]?$/.test(text)
}

/* In the table of lines, dearest first, and beside the source, by what the columns are headed; in the
 * strip of a selection, and in the picture that has lines above their callers. */
async function linesAreTheCommands(page, open, rows) {
    const wanted = new Map(rows.filter(row => row.file).map(row => [`${row.file.split('/').pop()}:${row.line}`, {
        forward: row.forward_ns, backward: row.backward_ns, tape: row.tape_bytes, peak: row.peak_bytes, calls: row.calls,
        'b/f': row.forward_ns && row.backward_ns ? row.backward_ns / row.forward_ns : 0, 'at peak': row.peak_bytes }]))
    const compare = (where, key, cells) => {
        for (const [title, text] of cells)
            if (title in wanted.get(key)) check(says(text, wanted.get(key)[title]), `${where}: ${key}: ${title} is ${text}, not ${wanted.get(key)[title]}`)
    }
    await open('view=summary&metric=forward')
    const table = await page.locator('.table-wrap[aria-label="Lines by cost"] table').evaluate(one => {
        const heads = [...one.querySelectorAll('th')].map(head => head.textContent)
        return [...one.querySelectorAll('tbody tr')].map(row => [row.querySelector('.key').textContent,
            [...row.cells].map((cell, i) => [heads[i], cell.querySelector('.v').textContent])])
    })
    const known = table.filter(([key]) => wanted.has(key))
    check(known.length === wanted.size && wanted.size > 15, `the summary has ${known.length} lines, not ${wanted.size}`)
    for (const [key, cells] of known) compare('summary', key, cells.filter(([title]) => title !== 'b/f' || wanted.get(key)[title]))
    const costs = known.map(([key]) => wanted.get(key).forward)
    check(costs.every((cost, i) => i === 0 || cost <= costs[i - 1]), `the dearest lines are not first: ${costs}`)
    await open('view=source')
    const source = await page.locator('.source').evaluate(one => {
        const cells = row => [...row.querySelectorAll('.g')].map(cell => cell.textContent)
        const heads = cells(one.querySelector('.src.head'))
        return [...one.querySelectorAll('.src.cost')].map(row => [row.dataset.line, cells(row).map((text, i) => [heads[i], text])])
    })
    check(source.length === wanted.size, `the source has ${source.length} lines with costs`)
    const name = known[0][0].replace(/\d+$/, '')
    for (const [line, cells] of source) compare('source', name + line, cells)
    for (const [key] of known.filter(([key]) => wanted.get(key).forward !== wanted.get(key).backward).slice(0, 3)) {
        await open(`view=summary&sel=${key}`)
        const items = await page.locator('.strip .item').allInnerTexts()
        compare('selection', key, items.map(item => item.split(/\s+/)).map(([title, ...text]) => [title, text.join(' ')]))
    }
    await open('view=flame&mode=inverted&metric=forward')
    const frames = await page.locator('[data-node]').evaluateAll(all => all.map(row => [row.querySelector('.name').textContent, Number(row.querySelector('.n').title)]))
    for (const [key, { forward }] of wanted) {
        const value = frames.find(([label]) => label.split(' ').includes(key))?.[1] ?? 0
        check(value === (forward ?? 0), `inverted: ${key} is ${value}, not ${forward}`)
    }
}
