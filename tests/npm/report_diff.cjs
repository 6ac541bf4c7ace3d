/* report_diff.cjs: the picture of what calls cost more or less: report_diff.cjs PAGE CHANGES, where CHANGES
 * is a file with what the command says of each line: {key, in, base, now}. The program has no call
 * paths but main. Prints what is wrong, or "diff: ok". */
const { browse, drawn, media, open, size } = require('./browse.cjs')
const { pathToFileURL } = require('url')

const [file, changes] = process.argv.slice(2)
const lines = JSON.parse(require('fs').readFileSync(changes, 'utf8'))
const failures = []

function check(good, text) {
    if (!good) failures.push(text)
}

browse(pathToFileURL(file).href, async page => {
    page.on('console', message => {
        if (message.type() === 'error') failures.push(`console: ${message.text()}`)
    })
    await page.waitForSelector('html[data-ready]')
    for (const metric of ['tape', 'forward', 'calls'])
        for (const gone of ['', '1']) await framesAreTheLines(page, metric, gone)
    await moreIsRed(page)
    await changesAreNotCut(page)
    await othersAreTold(page)
    await paperIsLight(page)
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('diff: ok')
    else process.exitCode = 1
})

/* What stands in the column "Change", but for the digits. */
function kind(line, metric) {
    const [base, now] = [line.base[metric], line.now[metric]]
    if (line.in === 1) return 'gone'
    if (line.in === 2) return 'new'
    return now === base ? '=' : now > base ? '+' : '\u2212'
}

async function framesAreTheLines(page, metric, gone) {
    await open(page, `view=diff&metric=${metric}&gone=${gone}`)
    const rows = await page.locator('[data-node]').evaluateAll(all => all.map(row => ({
        name: row.querySelector('.name').textContent, value: Number(row.querySelector('.n').title), change: row.lastElementChild.textContent })))
    const width = line => (gone && line.in === 1 ? line.base[metric] : line.now[metric])
    const sum = lines.reduce((all, line) => all + width(line), 0)
    check(rows[0].value === sum, `${metric}, ${gone}: all is ${rows[0].value}, not ${sum}`)
    for (const line of lines.filter(line => width(line) > 0)) {
        const row = rows.find(({ name }) => name.split(' ').includes(line.key) || name === line.key)
        check(row, `${metric}, ${gone}: no frame of ${line.key}`)
        if (!row) continue
        check(row.value === width(line), `${metric}, ${gone}: ${line.key} is ${row.value} wide, not ${width(line)}`)
        check(row.change.startsWith(kind(line, metric)), `${metric}, ${gone}: ${line.key} says ${row.change}, not ${kind(line, metric)}`)
        const part = Math.abs(line.now[metric] - line.base[metric]) / line.base[metric]
        const shown = parseFloat(row.change.slice(1)) / (row.change.endsWith('%') ? 100 : 1)
        if (/\d/.test(row.change)) check(Math.abs(shown / part - 1) < 0.1, `${metric}, ${gone}: ${line.key} says ${row.change}, not ${part}`)
    }
    const shown = rows.slice(1).map(row => row.change)
    check(shown.includes('gone') === Boolean(gone), `${metric}: gone calls are ${gone ? 'not ' : ''}shown`)
}

/* What is new or at least doubled is red, what is gone or at most half is green: as the style sheet has
 * them, in both themes. */
async function moreIsRed(page) {
    const seen = new Set()
    for (const theme of ['light', 'dark'])
        for (const metric of ['tape', 'calls']) {
            await media(page, { colorScheme: theme, reducedMotion: 'reduce' })
            const at = async zoom => {
                await open(page, `view=diff&metric=${metric}&gone=1&zoom=${zoom}`)
                await drawn(page)
            }
            await at('')
            const rows = await page.locator('[data-node]').evaluateAll(all => all.map(row => ({
                name: row.querySelector('.name').textContent, node: row.dataset.node, depth: row.getAttribute('aria-level') - 1 })))
            for (const line of lines) {
                const [base, now] = [line.base[metric], line.now[metric]]
                const row = rows.find(({ name }) => name.split(' ').includes(line.key) || name === line.key)
                if (!row || Math.abs(now - base) < Math.max(now, base) / 2) continue
                await at(`d${row.node}`)
                const [pixel, ...colors] = await page.locator('.flame-canvas').evaluate((canvas, depth) => {
                    const { data } = canvas.getContext('2d').getImageData(canvas.width * 0.8, (depth * 20 + 2) * devicePixelRatio, 1, 1)
                    const hex = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
                    return [[...data].slice(0, 3).join(), ...['--more', '--less'].map(name => [1, 3, 5].map(i => parseInt(hex(name).slice(i, i + 2), 16)).join())]
                }, row.depth)
                const wanted = now > base ? 'red' : 'green'
                seen.add(`${theme} ${wanted}`)
                check(pixel === colors[now > base ? 0 : 1], `${theme} ${metric}: ${line.key}, ${base} and now ${now}, is ${pixel}, which is not ${wanted}`)
            }
        }
    check(seen.size === 4, `only ${[...seen]} was looked at`)
    await media(page, { colorScheme: 'light', reducedMotion: 'no-preference' })
}

/* However narrow a frame is, a change that is written on it is a whole one. */
async function changesAreNotCut(page) {
    await page.evaluate(() => {
        const { fillText } = CanvasRenderingContext2D.prototype
        globalThis.written = new Set()
        CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
            if (text) globalThis.written.add(text)
            fillText.call(this, text, ...where)
        }
    })
    for (let width = 390; width <= 1500; width += 37) {
        await size(page, width, 900)
        await open(page, `view=diff&metric=tape&gone=${width % 2}`)
        await drawn(page)
    }
    const texts = await page.evaluate(() => [...globalThis.written])
    for (const text of texts) check(/^(gone|new|=|\+|[+−][\d.]+\s[%×])(  |$)/.test(text), `a frame says '${text}'`)
    check(texts.some(text => !text.includes('  ')) && texts.some(text => text.endsWith('…')), `no frame was narrow: ${texts}`)
    await size(page, 1280, 720)
}

/* The toggle, keys, selection and a reload; the zoom is not that of the view Flame. */
async function othersAreTold(page) {
    const hash = async () => new URLSearchParams((await page.evaluate(() => location.hash)).slice(1))
    await page.click('#gone-calls')
    check(!(await hash()).has('gone'), 'the toggle does not hide what is gone')
    await page.click('#gone-calls')
    check((await hash()).get('gone') === '1', 'the toggle does not show what is gone')
    await page.locator('[data-node]').nth(1).click()
    const zoom = (await hash()).get('zoom')
    check(/^d\d+$/.test(zoom), `the zoom is ${zoom}`)
    check((await page.locator('[data-node].selected').count()) > 0, 'no frame is selected')
    await page.reload()
    await page.waitForSelector('html[data-ready]')
    check((await hash()).get('zoom') === zoom, 'a reload loses the zoom')
    await page.keyboard.press('Escape')
    check(!(await hash()).has('zoom'), 'Esc does not zoom out')
    await page.keyboard.press('ArrowDown')
    check((await hash()).has('sel'), 'the arrow down selects nothing')
}

/* From a dark screen: canvases are light and show all rows while the page is printed, and are as they
 * were after it. */
async function paperIsLight(page) {
    await media(page, { colorScheme: 'dark' })
    for (const view of ['diff', 'flame']) {
        await open(page, `view=${view}`)
        await drawn(page)
        await page.evaluate(() => {
            const look = () => {
                const canvas = document.querySelector('main canvas')
                const frames = document.querySelector('.flame-spacer')
                const pixel = canvas.getContext('2d').getImageData(canvas.width - 3, canvas.height - 3, 1, 1).data
                return { pixel: [...pixel].join(), cut: frames ? frames.offsetHeight > canvas.height + 2 : false }
            }
            globalThis.seen = [look()]
            for (const when of ['beforeprint', 'afterprint'])
                addEventListener(when, () => globalThis.seen.push(look()), { once: true })
        })
        await page.pdf({ format: 'A4' })
        await page.waitForFunction(() => globalThis.seen.length === 3)
        const [before, paper, after] = await page.evaluate(() => globalThis.seen)
        check(before.pixel !== '255,255,255,255', `${view}: the screen is not dark`)
        check(paper?.pixel === '255,255,255,255', `${view}: on paper it is ${paper?.pixel}`)
        check(paper && !paper.cut, `${view}: rows are cut off on paper`)
        check(after && (await page.evaluate(() => getComputedStyle(document.body).backgroundColor)) !== 'rgb(255, 255, 255)', `${view}: the screen stays light`)
    }
}
