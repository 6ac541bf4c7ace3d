/* devtools.cjs FILE...: loads each trace in the Performance panel of Chromium's own DevTools and
 * prints what its table *Bottom-up* has of the first thread: for each activity the file, the name,
 * and the milliseconds of its own and with what it has called, separated by tabs. */
const path = require('path')
const { browse } = require('./browse.cjs')

const panel = 'devtools://devtools/bundled/devtools_app.html?panel=timeline'
const pause = 300 // ms between two pictures

/* Until nothing moves any more: the chart is a canvas, of which nothing else can be waited for. */
const settled = async page => {
    for (let before = null, now = await page.screenshot(); !before?.equals(now); now = await page.screenshot()) {
        before = now
        await page.waitForTimeout(pause)
    }
}

/* The chart's rows are 17 pixels high: the process behind the ruler, then its first thread; both are
 * folded. A click on its first slice selects it and its thread; one behind all slices the thread. */
const select = async page => {
    const canvas = page.locator('canvas.flame-chart-canvas').first()
    for (const [x, y] of [[60, 25], [60, 42], [10, 60], [700, 250]]) {
        await settled(page)
        await canvas.click({ position: { x, y } })
    }
}

/* The table has the rows that are seen: it is scrolled until none is new. */
const table = async page => {
    const rows = page.locator('.data-grid tr').filter({ hasText: /\d\sms/ })
    const found = new Map()
    await rows.first().waitFor()
    await rows.first().hover()
    for (let before = -1; before < found.size;) {
        before = found.size
        await settled(page)
        for (const [own, whole, name] of await rows.evaluateAll(all =>
            all.map(row => [...row.querySelectorAll('td')].map(cell => cell.innerText))))
            found.set(name.trim(), [parseFloat(own), parseFloat(whole)])
        await page.mouse.wheel(0, 60)
    }
    return found
}

const open = async (page, file) => {
    await page.setViewportSize({ width: 1400, height: 1000 })
    const input = page.locator('input[type=file]').first()
    await input.waitFor({ state: 'attached' })
    await input.setInputFiles(file)
    const tab = page.getByRole('tab', { name: 'Bottom-up' })
    await tab.waitFor()
    await settled(page)
    await page.keyboard.press('Escape') // the first time there is a dialog about keys
    await tab.click()
    await select(page)
    for (const [name, times] of await table(page))
        console.log([path.basename(file), name, ...times].join('\t'))
}

const main = async files => {
    for (const file of files) await browse(panel, page => open(page, file))
}

main(process.argv.slice(2)).catch(error => {
    console.error(error.message)
    process.exitCode = 1
})
