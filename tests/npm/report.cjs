/* report.cjs: drives the page of `tapescope html` as its reader would: report.cjs PAGE TOTALS [open],
 * where TOTALS is "forward backward tape peak" in ns and bytes; open: the views are opened, and no
 * more is done. Its profile has recomputation, or with "open" need not have any. Prints what is wrong, or "report: ok". */
const at = require('./browse.cjs')
const { browse, drawn, media, size } = at
const { pathToFileURL } = require('url')
const axe = require('fs').readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

const VIEWS = ['summary', 'flame', 'source', 'timeline', 'residuals', 'whatif', 'roofline', 'diff', 'growth', 'patterns']
const [file, totals, only] = process.argv.slice(2)
const url = pathToFileURL(file).href
const failures = []

function check(good, text) {
    if (!good) failures.push(text)
}

browse(url, async page => {
    page.on('console', message => {
        if (message.type() === 'error') failures.push(`console: ${message.text()}`)
    })
    page.on('dialog', dialog => {
        failures.push(`dialog: ${dialog.message()}`)
        return dialog.dismiss()
    })
    const ready = () => at.ready(page)
    const hash = () => at.hash(page)
    const open = address => at.open(page, address)
    const text = selector => page.locator(selector).first().innerText()
    const picture = () => at.picture(page)
    await ready()

    await everyViewOpens(page, hash)
    await totalsAreTheProfiles(page, open)
    if (only !== 'open') {
        await everyPhaseIsShown(page, open)
        await searchFinds(page, open, hash, ready, text)
        await selectionIsShared(page, open, hash, ready, text)
        await recursionCountsOnce(page, open, text)
        await sourceIsBeside(page, open, hash, text)
        await phasesHaveTheirColours(page, open)
        await flameKeysWork(page, open, hash, picture)
        await otherKeysWork(page, open, hash)
        await focusStays(page, open)
        await coloursMeanOneThing(page, open)
        await othersCanReadIt(page, open)
    }
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('report: ok')
    else process.exitCode = 1
})

/* By its tab and by its number's key; each shows something, and only the open one is selected. */
async function everyViewOpens(page, hash) {
    for (const [i, view] of VIEWS.entries())
        for (const how of ['click', 'key']) {
            await page.keyboard.press(i === 0 ? '2' : '1')
            if (how === 'click') await page.click(`#tab-${view}`)
            else await page.keyboard.press(String((i + 1) % 10))
            check(((await hash()).get('view') ?? 'summary') === view, `${view} by ${how}: the address does not say so`)
            check((await page.locator('[role=tab][aria-selected=true]').count()) === 1, `${view}: not one tab is selected`)
            check((await page.locator(`#view.view-${view}`).count()) === 1, `${view} by ${how}: not shown`)
            check((await page.locator('main').innerText()).trim().length > 20, `${view} by ${how}: empty`)
        }
}

/* What the summary and the frame "(all)" of each metric say is what the profile says. */
async function totalsAreTheProfiles(page, open) {
    const [forward, backward, tape, peak] = totals.split(' ').map(Number)
    await open('view=summary')
    const tiles = await page.locator('.tile .value').evaluateAll(all => all.map(one => parseInt(one.title, 10)))
    check((await page.locator('#view > p.part').first().innerText()).startsWith('AD is '), 'the first line does not say what part AD is')
    check(tiles.filter(Number.isFinite).join(' ') === totals, `the summary says ${tiles}, not ${totals}`)
    for (const mode of ['calls', 'inverted'])
        for (const [metric, value] of [['forward', forward], ['backward', backward], ['tape', tape], ['peak', peak]]) {
            await open(`view=flame&mode=${mode}&metric=${metric}`)
            const shown = await page.locator('[data-node="0"] .n').first().getAttribute('title')
            check(Number(shown) === value, `flame ${mode} ${metric}: ${shown}, not ${value}`)
        }
}

/* Recomputation has its rows in the roofline, dots and a legend, and its column of lines. */
async function everyPhaseIsShown(page, open) {
    await open('view=roofline')
    const phases = await page.locator('main tbody td .swatch').allInnerTexts()
    for (const phase of ['forward', 'backward', 'recompute']) {
        check(phases.includes(phase), `the roofline has no row of ${phase}`)
        check((await page.locator('.legend .swatch', { hasText: phase }).count()) === 1, `the roofline's legend lacks ${phase}`)
    }
    check((await page.locator('main svg .dot.rec').count()) > 0, 'the roofline has no dot of recomputation')
    await open('view=summary')
    const heads = await page.locator('main thead th').allInnerTexts()
    check(heads.some(head => /recomputed/i.test(head)), `no column of recomputation among ${heads}`)
    await open('view=source')
    const columns = await page.locator('main .src.head .g').allInnerTexts()
    check(columns.includes('recomp.'), `the source has no column of recomputation among ${columns}`)
    await page.locator('main .src', { has: page.locator('.bar.rec') }).first().click()
    check(/recomputed \d/.test(await page.locator('.strip').innerText()), 'a line that is selected does not say what was recomputed')
}

async function searchFinds(page, open, hash, ready, text) {
    await open('view=flame')
    await page.keyboard.press('/')
    await page.keyboard.type('tanh$')
    check(/%.* in \d+ frame/.test(await text('.match')), `search says '${await text('.match')}'`)
    check((await hash()).get('q') === 'tanh$', 'the search is not in the address')
    await page.keyboard.press('Enter')
    await page.keyboard.press('n')
    const first = (await hash()).get('sel')
    check(Boolean(first), 'n selects no match')
    const found = await text('.match')
    await page.reload()
    await ready()
    check((await text('.match')) === found, 'the search is another after a reload')
    check((await hash()).get('sel') === first, 'the selection is lost by a reload')
    await page.keyboard.press('N')
    await page.fill('#search', '(')
    check(/not a regular expression/.test(await text('.match')), 'a wrong expression is not said')
    await page.focus('#search')
    await page.keyboard.press('Escape')
    check(!(await hash()).has('q'), 'Esc leaves the search')
    for (const view of VIEWS) {
        await open(`view=${view}&q=matmul`)
        const said = await text('.match')
        const empty = (await page.locator('main table, main canvas, main svg, main .src').count()) === 0
        check(view === 'timeline' || empty || said.length > 0, `${view}: the search says nothing`)
    }
}

/* A row of the summary is the line in the source, the frame in the picture, the row elsewhere. */
async function selectionIsShared(page, open, hash, ready, text) {
    await open('view=summary')
    const row = page.locator('main tbody tr.link', { hasText: 'matmul' }).first()
    const key = await row.locator('.key').innerText()
    await row.click()
    check((await hash()).get('sel') === key, `the selection is not ${key}`)
    check((await text('.strip b')) === key, 'the strip does not name the selection')
    await page.click('.strip button:has-text("Source")')
    check((await page.locator('.src.selected').getAttribute('data-line')) === key.split(':')[1], 'another line of the source is selected')
    await page.reload()
    await ready()
    check((await page.locator('.src.selected').count()) === 1, 'a reload loses the line')
    check((await page.locator('.src.selected .bar').count()) > 0, 'the line has no bars')
    for (const view of ['residuals', 'roofline']) {
        await page.click(`#tab-${view}`)
        check((await page.locator('tr.selected').count()) > 0, `${view}: no row is selected`)
    }
    await page.click('#tab-flame')
    await page.keyboard.press('x')
    check((await page.locator('.pane h2').allInnerTexts()).join() === 'Callers,Callees', 'no sandwich of the selection')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    check(/^b\d+$/.test((await hash()).get('zoom')), 'the callees are not zoomed')
    await page.keyboard.press('Escape')
    await page.goBack()
    check((await hash()).get('view') === 'roofline', 'back does not go to the view before')
}

/* A line that calls itself, as network() does: in the search's share and in the sandwich it is what its
 * outermost calls are. Each row of the tree has its share of all. */
async function recursionCountsOnce(page, open, text) {
    const rows = () => page.locator('[data-node]').evaluateAll(all => all.map(row => ({
        name: row.querySelector('.name').textContent, value: Number(row.querySelector('.n').title), share: parseFloat(row.lastElementChild.textContent) })))
    await open('view=flame&metric=forward')
    await page.locator('[data-node]', { hasText: /^step/ }).first().click()
    const shown = await rows()
    const share = value => Number(((100 * value) / shown[0].value).toFixed(1))
    for (const row of shown) check(row.share === share(row.value), `${row.name} has ${row.share} %, not ${share(row.value)}`)
    const outer = shown.filter(row => row.name.startsWith('network ')).sort((a, b) => b.value - a.value)[0]
    const place = /[^ ]+:\d+/.exec(outer?.name)?.[0]
    check(place, `no call of network() among ${shown.map(row => row.name)}`)
    await open(`view=flame&metric=forward&q=network ${place}`)
    check(parseFloat(await text('.match')) === share(outer.value), `${place} is found in ${await text('.match')}, not ${share(outer.value)} %`)
    await open(`view=flame&metric=forward&mode=sandwich&sel=${place}`)
    check((await rows())[0].value === outer.value, `the callers of ${place} have ${(await rows())[0].value}, not ${outer.value}`)
}

/* The frame of all: blue as far as forward goes, then orange, then neither; in the mirrored panes, and by
 * one metric, one of them alone. */
async function phasesHaveTheirColours(page, openOf) {
    const open = async address => {
        await openOf(address)
        await drawn(page)
    }
    const [forward, backward] = totals.split(' ').map(Number)
    const looks = (pane, part, up) => page.locator('.flame-canvas').nth(pane).evaluate((canvas, at) => {
        const y = at.up ? canvas.height - 18 * devicePixelRatio : 2 * devicePixelRatio
        const pixel = canvas.getContext('2d').getImageData(Math.floor(canvas.width * at.part), y, 1, 1).data
        const style = getComputedStyle(document.documentElement)
        return ['fwd', 'bwd'].find(name => {
            const hex = style.getPropertyValue(`--${name}-1`).trim()
            return [1, 3, 5].every((i, k) => parseInt(hex.slice(i, i + 2), 16) === pixel[k])
        })
    }, { part, up })
    const same = async (where, pane, part, wanted, up) => {
        const seen = await looks(pane, part, up)
        check(seen === wanted, `${where}: ${part} of the frame of all is ${seen}, not ${wanted}`)
    }
    for (const theme of ['light', 'dark']) {
        await media(page, { colorScheme: theme, reducedMotion: 'reduce' })
        await open('view=flame')
        const all = Number(await page.locator('[data-node="0"] .n').first().getAttribute('title'))
        const middle = { fwd: forward / 2 / all, bwd: (forward + backward / 2) / all }
        for (const [name, part] of Object.entries(middle)) await same(`${theme} calls`, 0, part, name)
        await open('view=flame&mode=mirror')
        check((await page.locator('.treegrid .head > :first-child').innerText()) === 'Frame', 'the totals of the mirrored view are headed as forward')
        await same(`${theme} forward pane`, 0, middle.fwd, 'fwd', true)
        await same(`${theme} forward pane`, 0, middle.bwd, undefined, true)
        await same(`${theme} backward pane`, 1, backward / 2 / all, 'bwd')
        for (const [metric, name] of [['forward', 'fwd'], ['backward', 'bwd']]) {
            await open(`view=flame&metric=${metric}`)
            await same(`${theme} ${metric}`, 0, 0.7, name)
        }
    }
    await media(page, { colorScheme: 'light', reducedMotion: 'no-preference' })
}

async function flameKeysWork(page, open, hash, picture) {
    await media(page, { reducedMotion: 'reduce' }) // a zoom is over at once
    await open('view=flame')
    const sel = async () => (await hash()).get('sel')
    await page.keyboard.press('ArrowDown')
    const outer = await sel()
    check(Boolean(outer), 'the arrow down selects nothing')
    await page.keyboard.press('ArrowDown')
    const inner = await sel()
    check(inner !== outer, 'the arrow down stays')
    await page.keyboard.press('ArrowUp')
    check((await sel()) === outer, 'the arrow up does not go back')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    check((await hash()).has('zoom'), 'Enter does not zoom')
    await page.keyboard.press('Escape')
    check(!(await hash()).has('zoom'), 'Esc does not zoom out')
    for (const keys of ['ws', 'wd', 'wa']) {
        const before = await picture()
        await page.keyboard.press(keys[0])
        const near = await picture()
        check(before !== near, `${keys[0]} does not move the picture`)
        await page.keyboard.press(keys[1])
        check((await picture()) !== near, `${keys[1]} does not move the picture`)
        for (let i = 0; i < 12; i++) await page.keyboard.press('s')
    }
    for (const [key, mode] of [['i', 'inverted'], ['f', 'mirror'], ['c', null]]) {
        await page.keyboard.press(key)
        check((await hash()).get('mode') === mode, `${key} does not rearrange`)
    }
    // The tree beside the picture, by keys alone.
    await page.locator('[data-node]').first().focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    check((await hash()).has('zoom'), 'Enter in the tree does not zoom')
    check((await page.locator('[data-node]:focus').count()) === 1, 'the tree loses the focus')
}

async function otherKeysWork(page, open, hash) {
    await open('view=summary')
    await page.keyboard.press('m')
    check((await hash()).get('metric') === 'forward', 'm does not change the metric')
    await page.keyboard.press('M')
    check(!(await hash()).has('metric'), 'M does not change it back')
    const theme = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    const before = await theme()
    await page.keyboard.press('t')
    check((await theme()) !== before, 't does not change the theme')
    await page.keyboard.press('?')
    check(await page.locator('dialog').isVisible(), '? shows no keys')
    for (const key of ['/', 'Enter', 'Esc', 'm', 't', '?']) check((await page.locator('dialog kbd').allInnerTexts()).includes(key), `the sheet lacks ${key}`)
    await page.keyboard.press('Escape')
    check(!(await page.locator('dialog').isVisible()), 'Esc does not close the keys')
    await open('view=source')
    await page.keyboard.press('ArrowDown')
    const first = (await hash()).get('sel')
    await page.keyboard.press('ArrowDown')
    check(first && first !== (await hash()).get('sel'), 'arrows do not move in the source')
    await page.keyboard.press('Escape')
    check(!(await hash()).has('sel') && !(await page.locator('.strip').isVisible()), 'Esc keeps the selection')
}

/* The selected frame's source stands beside the picture, and leads to its view; there hot lines may stand
 * alone, and what was called through a line and who needs what it made stand with it. */
async function sourceIsBeside(page, open, hash, text) {
    await open('view=summary')
    const key = await page.locator('main tbody tr.link .key', { hasText: '.c:' }).first().innerText()
    const line = key.split(':')[1]
    await open(`view=flame&sel=${key}`)
    check((await text('.flame-source .selected .no')) === line, `${key}: another line is beside the picture`)
    check((await page.locator('.flame-source .src').count()) > 3, `${key}: no lines about it`)
    await page.click('.flame-source .go')
    check((await hash()).get('view') === 'source', 'the source beside the picture does not lead to its view')
    check((await page.locator('.source .selected').getAttribute('data-line')) === line, 'the source shows another line')
    const cost = await page.locator('.source .src.cost').count()
    check((await page.locator('.source .src[data-line]').count()) > cost, 'all lines cost something')
    check((await page.locator('.source .src .through .v').count()) > 0, 'nothing was called through a line')
    check((await page.locator('.source .src.cost .kept .v').allInnerTexts()).some(names => /[a-z]/.test(names)), 'nothing is kept by an op')
    await page.click('button:has-text("Hot lines only")')
    check((await page.locator('.source .src[data-line]').count()) === cost, 'hot lines are not alone')
    check((await hash()).get('hot') === '1', 'the address does not say that hot lines are alone')
    await open('view=source&hot=1')
    await page.click('button:has-text("Next")')
    const first = (await hash()).get('sel')
    await page.click('button:has-text("Next")')
    check(first && first !== (await hash()).get('sel'), 'Next stays')
    await page.click('button:has-text("Previous")')
    check((await hash()).get('sel') === first, 'Previous does not go back')
}

/* Where Enter was pressed: on a row, a column's head, a chip. */
async function focusStays(page, open) {
    const focused = () => page.evaluate(() => {
        const { activeElement: at } = document
        return [at.closest('th, tr, .chip, .file') ? at.closest('[data-focus]')?.dataset.focus : at.tagName, at.isConnected].join()
    })
    for (const [address, selector] of [['view=summary', 'main tbody tr:nth-child(2)'], ['view=summary', 'main th:nth-child(3) button'],
        ['view=residuals', 'main tbody tr:nth-child(2)'], ['view=residuals', 'main .tools .chip:nth-child(2)'], ['view=roofline', 'main th:nth-child(3) button'],
        ['view=flame', '.tools .chip:nth-child(2)'], ['view=source', '.files .file']]) {
        await open(address)
        await page.focus(selector)
        const before = await focused()
        await page.keyboard.press('Enter')
        await drawn(page)
        check(before === (await focused()) && !before.startsWith('BODY'), `${address}: Enter on ${selector} moves the focus from ${before} to ${await focused()}`)
    }
}

/* Blue and orange are forward and backward alone; what a search finds is no error. Views without anything
 * are dim, and say why. */
async function coloursMeanOneThing(page, open) {
    await open('view=residuals')
    const kinds = await page.locator('main td .kind').evaluateAll(all => Object.fromEntries(all.map(one => [one.textContent, getComputedStyle(one).backgroundColor])))
    const phases = await page.evaluate(() => ['fwd', 'bwd'].map(name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}-1`).trim())
        .map(hex => `rgb(${[1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)).join(', ')})`))
    check(Object.keys(kinds).length >= 3, `kinds of bytes: ${Object.keys(kinds)}`)
    check(new Set(Object.values(kinds)).size === Object.keys(kinds).length, `two kinds have one colour: ${JSON.stringify(kinds)}`)
    for (const [kind, colour] of Object.entries(kinds)) check(!phases.includes(colour), `${kind} has the colour of a phase`)
    const colour = () => page.locator('.match').evaluate(one => getComputedStyle(one).color)
    await open('view=flame&q=a')
    const found = await colour()
    await open('view=flame&q=(')
    check(found !== (await colour()), 'what is found has the colour of an error')
    await open('view=whatif')
    check(/new peak( \(the axis begins at|$)/.test(await page.locator('main svg .axis').last().textContent()), 'an axis does not say where it begins')
    const dim = await page.locator('.tabs .nothing').evaluateAll(all => all.map(one => `${one.id} ${one.title}`))
    for (const text of dim) check(/: [A-Z].*\.$/.test(text), `${text}: no reason`)
    for (const view of VIEWS) {
        await open(`view=${view}`)
        const empty = (await page.locator('main table, main canvas, main svg, main .src').count()) === 0
        check(empty === dim.some(text => text.startsWith(`tab-${view} `)), `${view} is ${empty ? 'not ' : ''}dim`)
    }
}

/* No fault by axe in any view and theme, no page wider than a telephone, a page for paper. */
async function othersCanReadIt(page, open) {
    for (const theme of ['light', 'dark']) {
        await media(page, { colorScheme: theme })
        for (const view of VIEWS) {
            await open(`view=${view}&range=0-50000`)
            if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe)
            const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }))
            for (const fault of found.violations)
                failures.push(`axe, ${view}, ${theme}: ${fault.id}: ${fault.nodes[0].html} ${fault.nodes[0].failureSummary}`)
        }
    }
    await size(page, 390, 844)
    for (const view of VIEWS) {
        await open(`view=${view}&sel=none.c:1&range=0-50000`)
        const width = await page.evaluate(() => document.documentElement.scrollWidth)
        check(width <= 390, `${view} is ${width} wide on a screen of 390`)
    }
    await media(page, { media: 'print' })
    await open('view=summary&sel=none.c:1')
    for (const part of ['controls', 'tabs', 'strip']) check(!(await page.locator(`.${part}`).isVisible()), `${part}: what is for the screen is printed`)
    check((await page.evaluate(() => getComputedStyle(document.body).backgroundColor)) === 'rgb(255, 255, 255)', 'paper is not white')
}
