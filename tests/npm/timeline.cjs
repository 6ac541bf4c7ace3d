/* timeline.cjs: the page's timeline and what a range of time does to all views: timeline.cjs PAGE EVENTS BARE,
 * SCOPES, where EVENTS is `tapescope tape --records --json` of the profile, from which sums are computed anew, BARE
 * the page of a profile without single events, and SCOPES `tapescope top --by scope --json`. Prints
 * what is wrong, or "timeline: ok". */
const { browse, drawn, hash, open, picture, ready, size } = require('./browse.cjs')
const { pathToFileURL } = require('url')
const fs = require('fs')

const [file, eventsFile, bare, scopesFile] = process.argv.slice(2)
const { events } = JSON.parse(fs.readFileSync(eventsFile, 'utf8'))
const failures = []
const EDGE = { left: 78, right: 14, bottom: 24 } // of the picture, about its times

function check(good, text) {
    if (!good) failures.push(text)
}

/* What the events have between two times: of a sweep what nothing within it ran again is backward,
 * and what did is recomputed. where: which ops and pullbacks are asked for; of all, null. */
function expected(from, to, where) {
    const clip = e => Math.max(0, Math.min(to, e.start_ns + e.ns) - Math.max(from, e.start_ns))
    const begins = e => e.start_ns >= from && e.start_ns < to
    const sweeps = events.filter(e => e.kind === 'sweep')
    const again = op => sweeps.some(s => s.start_ns <= op.start_ns && op.start_ns + op.ns <= s.start_ns + s.ns)
    const sum = { forward: 0, backward: 0, recompute: 0, calls: 0 }
    for (const e of events) {
        if (where && !where(e)) continue
        if (e.kind === 'op') {
            sum[again(e) ? 'recompute' : 'forward'] += clip(e)
            if (!again(e) && !e.part && begins(e)) sum.calls++
            if (again(e) && !where) sum.backward -= clip(e)
        } else if (e.kind === 'sweep' && !where) {
            sum.backward += clip(e)
            if (begins(e)) sum.calls++
        } else if (e.kind === 'pullback' && where) {
            sum.backward += clip(e)
        }
    }
    return { ...sum, total: sum.forward + sum.backward + sum.recompute }
}

browse(pathToFileURL(file).href, async page => {
    page.on('console', message => {
        if (message.type() === 'error') failures.push(`console: ${message.text()}`)
    })
    await ready(page)
    await dragsAreSummed(page)
    await allOfTheTimeIsTheWhole(page)
    await linesAreSummed(page)
    await othersAreOfTheWholeRun(page)
    await holdersAreOfTheRange(page)
    await rangesAreCleared(page)
    await spansAreThere(page)
    await namesSayThatTheyAreCut(page)
    await phasesHaveTheirColours(page)
    await keysMoveTheTime(page)
    await nothingIsSelectedWithoutEvents(page)
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('timeline: ok')
    else process.exitCode = 1
})

async function drag(page, from, to) {
    const box = await page.locator('.time-canvas').boundingBox()
    const x = part => box.x + EDGE.left + part * (box.width - EDGE.left - EDGE.right)
    await page.mouse.move(x(from), box.y + 100)
    await page.mouse.down()
    await page.mouse.move(x(to), box.y + 100, { steps: 4 })
    await page.mouse.up()
}

/* A time as the page writes it. */
function near(text, ns) {
    const [digits, unit] = (text ?? '').split(/\s/)
    return digits !== '' && Math.abs(Number(digits) * { ns: 1, µs: 1e3 }[unit ?? 'ns'] - ns) <= 0.01 * ns
}

const rangeOf = async page => ((await hash(page)).get('range') ?? '').split('-').map(Number)
const rootOf = async page => Number(await page.locator('[data-node="0"] .n').first().getAttribute('title'))

async function dragsAreSummed(page) {
    for (const [first, last] of [[0.2, 0.55], [0.93, 0.31], [0.02, 0.98], [0.4, 0.41]]) {
        await open(page, 'view=timeline')
        await drag(page, first, last)
        const [from, to] = await rangeOf(page)
        check(to > from, `dragging from ${first} to ${last} selects no range`)
        const sums = expected(from, to, null)
        const end = Math.max(...events.map(e => e.start_ns + e.ns))
        for (const [edge, part] of [[from, Math.min(first, last)], [to, Math.max(first, last)]])
            check(Math.abs(edge / end - part) < 0.02, `dragging from ${first} to ${last} selects ${from}-${to} of ${end}`)
        const strip = await page.locator('.stretch').innerText()
        for (const name of ['forward', 'backward'])
            check(/^Range .* – .*/.test(strip) && near(new RegExp(`${name}\\s+(\\S+\\s[nµ]s|0)`).exec(strip)?.[1], sums[name]), `the strip says '${strip}'`)
        for (const mode of ['calls', 'inverted'])
            for (const metric of ['total', 'forward', 'backward', 'recompute', 'calls']) {
                await open(page, `view=flame&mode=${mode}&metric=${metric}&range=${from}-${to}`)
                check((await rootOf(page)) === sums[metric], `${from}-${to} ${mode} ${metric}: ${await rootOf(page)}, not ${sums[metric]}`)
            }
        await page.reload()
        await ready(page)
        check((await rangeOf(page)).join() === `${from},${to}` && (await rootOf(page)) === sums.calls, 'a reload loses the range')
        await page.click('.stretch button[aria-label="Clear the range"]')
        check(!(await hash(page)).has('range') && !(await page.locator('.stretch').isVisible()), 'the range is not cleared')
        const whole = expected(0, Infinity, null)
        await open(page, 'view=flame&metric=backward')
        check((await rootOf(page)) === whole.backward, `without a range backward is ${await rootOf(page)}, not ${whole.backward}`)
    }
}

/* Each node has in a range of all the time what it has without one. */
async function allOfTheTimeIsTheWhole(page) {
    let nodes = 0
    const rows = async address => {
        await open(page, address)
        return JSON.stringify(await page.locator('[data-node]').evaluateAll(all => all.map(row => [row.dataset.node, row.querySelector('.n').title])))
    }
    for (const metric of ['forward', 'backward', 'recompute'])
        for (const mode of ['calls', 'inverted']) {
            const all = JSON.parse(await rows(`view=flame&mode=${mode}&metric=${metric}`))
            for (const [node] of all) {
                const without = await rows(`view=flame&mode=${mode}&metric=${metric}&zoom=${node}`)
                const within = await rows(`view=flame&mode=${mode}&metric=${metric}&zoom=${node}&range=0-1000000000`)
                check(within === without, `${mode} ${metric} ${node}: ${within} within all the time, ${without} without a range`)
                nodes += JSON.parse(within).length
            }
        }
    check(nodes > 100, `only ${nodes} nodes were compared`)
}

/* What a line has in the source is what its events have. */
async function linesAreSummed(page) {
    const line = events.find(e => e.op === 'matmul').line
    const sums = expected(20000, 70000, e => e.line === line)
    await open(page, `view=flame&mode=inverted&range=20000-70000`)
    for (const metric of ['forward', 'backward']) {
        await open(page, `view=flame&mode=inverted&metric=${metric}&range=20000-70000`)
        const shown = await page.locator('[data-node]:not([data-node="0"])', { hasText: `exports.c:${line}` }).locator('.n').first().getAttribute('title')
        check(Number(shown) === sums[metric] && sums[metric] > 0, `line ${line}: ${metric} is ${shown}, not ${sums[metric]}`)
    }
    await open(page, `view=source&range=20000-70000`)
    const cell = await page.locator(`.src[data-line="${line}"] .forward .v`).textContent()
    check(parseFloat(cell) * 1000 === sums.forward, `the source says ${cell}, not ${sums.forward} ns`)
    await open(page, `view=source`)
    check(parseFloat(await page.locator(`.src[data-line="${line}"] .forward .v`).textContent()) * 1000 > sums.forward, 'without a range the line has no more')
    await open(page, `view=summary&range=20000-70000`)
    check(await page.locator('tr', { hasText: `exports.c:${line}` }).first().innerText().then(text => text.includes(cell)), 'the summary has another time')
}

/* What a range does not change is as the command has it for the whole run, and the strip says so. */
async function othersAreOfTheWholeRun(page) {
    const scopes = JSON.parse(fs.readFileSync(scopesFile, 'utf8')).rows
    const bytesAxis = () => drawn(page).then(() => page.locator('.time-canvas').evaluate(canvas =>
        canvas.getContext('2d').getImageData(0, 0, 74 * devicePixelRatio, canvas.height).data.join()))
    const axes = []
    for (const range of ['', '&range=20000-70000']) {
        await open(page, `view=source${range}`) // so that the view is made under the range
        await open(page, `view=timeline${range}`)
        axes.push(await bytesAxis())
        const rows = await page.locator('[aria-label="Scopes"] table').evaluate(table => {
            const heads = [...table.querySelectorAll('th')].map(head => head.textContent)
            return [...table.querySelectorAll('tbody tr')].map(row => Object.fromEntries([...row.cells].map((cell, i) => [heads[i], cell.textContent])))
        })
        check(rows.length === scopes.length && rows.length > 1, `${rows.length} scopes are shown`)
        for (const scope of scopes) {
            const row = rows.find(one => one.scope === scope.scope)
            for (const [title, name] of [['wall', 'wall_ns'], ['self', 'self_ns'], ['forward', 'forward_ns'], ['backward', 'backward_ns']])
                check(near(row?.[title], scope[name]), `${scope.scope}, ${range}: ${title} is ${row?.[title]}, not ${scope[name]} ns`)
        }
    }
    check(axes[0] === axes[1], 'a range changes how the axis of bytes looks')
    for (const [view, what] of [['summary', '.tiles'], ...['whatif', 'roofline', 'diff', 'growth', 'patterns'].map(view => [view, 'main'])]) {
        await open(page, `view=${view}`)
        const whole = await page.locator(what).innerText()
        await open(page, `view=${view}&range=20000-70000`)
        check((await page.locator(what).innerText()) === whole, `${view} is another under a range`)
    }
    for (const [view, text] of [['summary', 'bytes and tiles are'], ['flame', 'bytes are'], ['source', 'bytes are'], ['timeline', 'bytes and the table of scopes are'],
        ['residuals', 'all but who holds the bytes is'], ['whatif', 'this view is'], ['roofline', 'this view is'], ['diff', 'this view is'], ['growth', 'this view is'], ['patterns', 'this view is']]) {
        await open(page, `view=${view}&range=20000-70000`)
        const strip = (await page.locator('.stretch').innerText()).replace(/\s+/g, ' ')
        check(strip.includes(` ${text} of the whole run`), `${view}: the strip says '${strip}'`)
    }
}

/* Who held what at the moment of the range with the most: of all the time that is the peak, and of a part of
 * it what the page's moments say; rows add up to the title. */
async function holdersAreOfTheRange(page) {
    const rows = () => page.locator('main tbody tr').evaluateAll(all => all.map(row => [...row.cells].slice(0, 5).map(cell => cell.textContent).join('|')))
    await open(page, 'view=residuals')
    const peak = await rows()
    await open(page, 'view=residuals&range=0-1000000000')
    check(JSON.stringify(await rows()) === JSON.stringify(peak), `at the peak ${peak.slice(0, 3)}, in all the time ${(await rows()).slice(0, 3)}`)
    check(/ at most in the range, .* after the start$/.test(await page.locator('main h2').innerText()), `all the time: ${await page.locator('main h2').innerText()}`)
    const first = events.find(e => e.kind === 'op' && e.start_ns > 0)
    await open(page, `view=residuals&range=0-${first.start_ns + first.ns}`)
    check((await page.locator('main h2').innerText()).includes('in the range') && JSON.stringify(await rows()) !== JSON.stringify(peak), 'the begin holds what the peak does')
}

async function rangesAreCleared(page) {
    await open(page, 'view=timeline&range=20000-70000&time=10000-90000')
    await page.keyboard.press('Escape')
    check(!(await hash(page)).has('range') && (await hash(page)).has('time'), 'Esc does not clear the range')
    await page.keyboard.press('Escape')
    check(!(await hash(page)).has('time'), 'Esc does not show all the time')
    await open(page, 'view=timeline&range=20000-70000')
    await page.locator('.time-canvas').dblclick({ position: { x: 300, y: 60 } })
    check(!(await hash(page)).has('range'), 'a double click does not clear the range')
    await open(page, 'view=flame&range=20000-70000')
    await page.keyboard.press('Escape')
    check(!(await hash(page)).has('range'), 'Esc does not clear the range of the flame')
}

async function spansAreThere(page) {
    await open(page, 'view=timeline')
    const spans = events.filter(e => e.kind === 'scope').sort((a, b) => a.start_ns - b.start_ns)
    const rows = page.locator('[aria-label="Spans of scopes"] tbody tr')
    check((await rows.locator('td:first-child').allInnerTexts()).join() === spans.map(e => e.scope).join() && spans.length > 3, `the spans are ${await rows.allInnerTexts()}`)
    check(spans.some(e => e.scope === 'forward depth=2'), 'no scope has a key and a value')
    const box = await page.locator('.time-canvas').boundingBox()
    const end = JSON.parse(fs.readFileSync(eventsFile, 'utf8')).profile.duration_ns
    for (const i of [1, 4]) {
        await open(page, 'view=timeline')
        await rows.nth(i).click()
        const [from, to] = await rangeOf(page)
        check(from <= spans[i].start_ns && to >= spans[i].start_ns + spans[i].ns && to - from <= 1.1 * spans[i].ns, `span ${i} selects ${from}-${to}`)
        await page.keyboard.press('Escape')
        await page.locator('.time-canvas').scrollIntoViewIfNeeded()
        const x = EDGE.left + ((spans[i].start_ns + spans[i].ns / 2) / end) * (box.width - EDGE.left - EDGE.right)
        await page.locator('.time-canvas').click({ position: { x, y: box.height - EDGE.bottom - 14 } })
        check((await rangeOf(page)).join() === `${from},${to}`, `a click on span ${i} selects ${await rangeOf(page)}`)
        check((await rows.nth(i).getAttribute('aria-selected')) === 'true', `span ${i} is not marked`)
    }
    await open(page, `view=timeline&time=${spans[0].start_ns}-${spans[0].start_ns + 1000}`)
    check((await rows.count()) === 1, 'spans out of view are listed')
}

/* On a telephone, where spans are narrower than their names. */
async function namesSayThatTheyAreCut(page) {
    await open(page, 'view=source')
    await size(page, 390, 800)
    await page.evaluate(() => {
        const { fillText } = CanvasRenderingContext2D.prototype
        globalThis.written = []
        CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
            globalThis.written.push(text)
            fillText.call(this, text, ...where)
        }
    })
    await open(page, 'view=timeline')
    await page.waitForFunction(() => globalThis.written.includes('scopes'))
    const written = await page.evaluate(() => globalThis.written)
    check(written.some(text => /^for.*…$/.test(text)) && !written.includes('forward depth=2'), `the names of spans are ${written}`)
    await size(page, 1280, 720)
}

/* The row below the bytes, which has one of the scopes below it. */
async function phasesHaveTheirColours(page) {
    for (const [kind, color] of [['op', '--fwd-1'], ['pullback', '--bwd-1']]) {
        const e = events.find(one => one.kind === kind && !one.again)
        await open(page, `view=timeline&time=${e.start_ns + 200}-${e.start_ns + e.ns - 200}`)
        await drawn(page)
        const [pixel, wanted] = await page.locator('.time-canvas').evaluate((canvas, [name, up]) => {
            const zoom = canvas.height / canvas.offsetHeight
            const { data } = canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height - up * zoom, 1, 1)
            const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim()
            return [[...data].slice(0, 3).join(), [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)).join()]
        }, [color, EDGE.bottom + 53])
        check(pixel === wanted, `${kind}: the colour is ${pixel}, not ${wanted}`)
        // Below it the op itself.
        const canvas = page.locator('.time-canvas')
        const box = await canvas.boundingBox()
        const at = { x: box.width / 2, y: box.height - EDGE.bottom - 33 }
        check(Number(await canvas.getAttribute('data-ops')) >= 1, `${kind}: not drawn by itself`)
        await canvas.hover({ position: at })
        const said = await page.locator('main .note[role=status]').innerText()
        check(new RegExp(`· .*\\b${e.op}\\b.*, ${kind === 'op' ? 'forward' : 'backward'}: `).test(said), `${kind}: ${e.op} is said to be '${said}'`)
        await canvas.click({ position: at })
        check(((await hash(page)).get('sel') ?? '').endsWith(`:${e.line}`), `${kind}: a click selects ${(await hash(page)).get('sel')}, not line ${e.line}`)
        await page.keyboard.press('Escape')
    }
}

async function keysMoveTheTime(page) {
    const time = async () => (await hash(page)).get('time')
    await open(page, 'view=timeline')
    await page.mouse.move(0, 0)
    const before = await picture(page)
    await page.keyboard.press('w')
    const near = await time()
    check(Boolean(near) && (await picture(page)) !== before, 'w does not zoom')
    await page.keyboard.press('d')
    const right = await time()
    check(Number(right.split('-')[0]) > Number(near.split('-')[0]), 'd does not move to the right')
    await page.keyboard.press('a')
    check((await time()) === near, 'a does not move back')
    await page.reload()
    await ready(page)
    check((await time()) === near, 'a reload loses what is zoomed to')
    for (let i = 0; i < 4; i++) await page.keyboard.press('s')
    check((await time()) === null && (await picture(page)) === before, 's does not zoom out')
    await drag(page, 0.4, 0.6)
    await page.keyboard.press('Enter')
    check((await time()) === (await hash(page)).get('range'), 'Enter does not zoom to the range')
    await page.click('button:has-text("Whole time")')
    check((await time()) === null, 'the whole time is not shown again')
    await page.click('button:has-text("Go to the peak")')
    check((await time()) !== null, 'the peak is not gone to')
}

async function nothingIsSelectedWithoutEvents(page) {
    await page.goto(`${pathToFileURL(bare).href}#view=timeline&range=1000-5000`)
    await ready(page)
    check(/--timeline/.test(await page.locator('main').innerText()), 'the page does not say how to get a timeline')
    check(!(await page.locator('.stretch').isVisible()), 'there is a range without events')
    // What is in no sweep may be forward or anything else: it has no phase's colour.
    await drawn(page)
    const colours = await page.locator('.time-canvas').evaluate(canvas => {
        const zoom = canvas.height / canvas.offsetHeight
        const { data } = canvas.getContext('2d').getImageData(0, Math.round((16 + 240 + 6 + 10) * zoom), canvas.width, 1)
        const seen = new Set(Array.from({ length: canvas.width }, (_, i) => [...data].slice(4 * i, 4 * i + 3).join()))
        const style = getComputedStyle(document.documentElement)
        return ['fwd', 'bwd', 'gray'].filter(name => seen.has([1, 3, 5].map(i => parseInt(style.getPropertyValue(`--${name}-1`).trim().slice(i, i + 2), 16)).join()))
    })
    check(colours.join() === 'bwd,gray', `the strip of sweeps has the colours ${colours}`)
    await open(page, 'view=timeline')
    await drag(page, 0.3, 0.7)
    check((await hash(page)).has('time') && !(await hash(page)).has('range'), 'dragging does not zoom')
}
