/* bench_report.cjs: how long the page of `tapescope html` takes over many frames, in Chromium:
 * bench_report.cjs PAGE [--quick], where PAGE is the page of any profile, whose data are replaced.
 * One JSON object a line. `peer` is the bar that the page is held to, in ms; nothing is asserted. */
const { readFileSync, writeFileSync, mkdtempSync, rmSync } = require('fs')
const { tmpdir } = require('os')
const { join } = require('path')
const { pathToFileURL } = require('url')
const { gunzipSync, gzipSync } = require('zlib')
const { chromium } = require('playwright-core')

const [file, ...options] = process.argv.slice(2)
const FRAMES = options.includes('--quick') ? 2000 : 100000
const ROUNDS = options.includes('--quick') ? 3 : 9
const BARS = { first_paint: 500, first_paint_summary: 500, first_paint_source: 500, zoom: 16, search: 100 }
const DATA = /(id="profile-data">)([^<]*)(<)/

/* A tree of distinct frames, 24 deep at most, whose leaves cost by a power law; numbers from a
 * generator with a fixed seed. */
function manyFrames(document) {
    let seed = 1
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647
    const strings = ['']
    const name = text => strings.push(text) - 1
    const file = name('/src/model.c')
    const columns = { parent: [-1], frame: [0], cut: [], file: [0], line: [0], function: [0], ops: [0], calls: [0], forward_ns: [0], backward_ns: [0], value_bytes: [0] }
    const op = name('matmul')
    const depth = [0]
    for (let i = 1; i < FRAMES; i++) {
        let parent = i < 20 ? i - 1 : Math.floor(random() * i)
        while (depth[parent] >= 24) parent = columns.parent[parent]
        depth.push(depth[parent] + 1)
        columns.parent.push(parent)
        columns.frame.push(i)
        columns.file.push(file)
        columns.line.push(i)
        columns.function.push(name(`layer_${i % 977}_block_${i}`))
        columns.ops.push(op)
        columns.calls.push(1 + Math.floor(random() * 9))
        columns.forward_ns.push(Math.floor(100 / (random() + 1e-4)))
        columns.backward_ns.push(Math.floor(200 / (random() + 1e-4)))
        columns.value_bytes.push(8 * Math.floor(1000 * random()))
    }
    const lines = { ...columns, parent: [], frame: [], cut: [], expected_ratio: columns.calls.map(() => 1), slow_backward: [] }
    const files = [{ file, short: 'model.c', why: 'made up' }]
    return { ...document, strings, files, lines, tree: { has_paths: true, too_large: false, ...columns }, space: null, whatif: null, diff: null, growth: null, scopes: { name: [] } }
}

const median = values => values.sort((a, b) => a - b)[values.length >> 1]

async function measure(url) {
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium-headless-shell', args: ['--no-sandbox', '--disable-gpu', '--enable-unsafe-swiftshader'] })
    const times = Object.fromEntries(Object.keys(BARS).map(metric => [metric, []]))
    const open = async (view, metric) => {
        const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
        await page.emulateMedia({ reducedMotion: 'reduce' }) // a zoom is one picture
        page.on('pageerror', error => { throw error })
        await page.goto(`${url}#view=${view}`)
        await page.waitForSelector('html[data-drawn]')
        times[metric].push(Number(await page.getAttribute('html', 'data-drawn')))
        return page
    }
    for (let round = 0; round < ROUNDS; round++) {
        for (const view of ['summary', 'source']) await (await open(view, `first_paint_${view}`)).close()
        const page = await open('flame', 'first_paint')
        times.zoom.push(await page.evaluate(async () => {
            const press = key => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))
            const all = []
            for (const key of 'wwwwddaass') {
                const start = performance.now()
                press(key)
                all.push(performance.now() - start)
                await new Promise(requestAnimationFrame)
            }
            return Math.max(...all)
        }))
        times.search.push(await page.evaluate(async () => {
            const field = document.getElementById('search')
            const start = performance.now()
            field.value = 'block_.*77$'
            field.dispatchEvent(new Event('input'))
            await new Promise(done => requestAnimationFrame(() => setTimeout(done)))
            return performance.now() - start
        }))
        await page.close()
    }
    await browser.close()
    return times
}

async function main() {
    const page = readFileSync(file, 'utf8')
    const document = JSON.parse(gunzipSync(Buffer.from(DATA.exec(page)[2], 'base64')))
    const folder = mkdtempSync(join(tmpdir(), 'bench_report-'))
    try {
        const made = join(folder, 'many.html')
        const packed = gzipSync(JSON.stringify(manyFrames(document)), { level: 9 }).toString('base64')
        writeFileSync(made, page.replace(DATA, (all, before, data, after) => before + packed + after))
        const times = await measure(pathToFileURL(made).href)
        for (const [metric, bar] of Object.entries(BARS)) {
            const ours = median(times[metric])
            console.log(JSON.stringify({ suite: 'report', case: `frames${FRAMES}`, metric, ours, peer_name: 'bar', peer: bar, ratio: ours / bar, unit: 'ms' }))
        }
    } finally {
        rmSync(folder, { recursive: true })
    }
}

main()
