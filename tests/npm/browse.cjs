/* browse.cjs: what the drivers here have in common: Chromium without a window, at
 * TEST_CHROMIUM or where Debian has it. */
const { chromium } = require('playwright-core')

/* The browser, which all share that use it at the same time. */
let browser = null, users = 0

/* Calls use(browser), which is there until the last of its users has ended. */
const hold = async use => {
    users++
    browser ??= chromium.launch({
        executablePath: process.env.TEST_CHROMIUM || '/usr/bin/chromium-headless-shell',
        args: ['--no-sandbox', '--disable-gpu'],
        timeout: 120000, // as of the page below: machines may be busy
    })
    try {
        return await use(await browser)
    } finally {
        if (--users === 0) {
            const last = browser
            browser = null
            await (await last).close()
        }
    }
}
exports.hold = hold

/* What browse() was last called for, until it has ended: run.cjs waits for it. */
exports.last = null

/* Opens a page of this machine, in a context of its own, and calls use(page). An error on the page, or
 * a request of anything but the page and what it holds, ends the program with status 1. */
exports.browse = (url, use) => exports.last = hold(async browser => {
    const wrong = []
    const context = await browser.newContext()
    try {
        const page = await context.newPage()
        page.setDefaultTimeout(120000)
        page.on('pageerror', error => wrong.push(`error on the page: ${error.message}`))
        page.on('request', request => {
            if (request.url() !== url && !/^(file|data|blob|devtools):/.test(request.url())) wrong.push(`request of ${request.url()}`)
        })
        await page.goto(url)
        await use(page)
    } finally {
        await context.close()
    }
    for (const text of wrong) console.error(text)
    if (wrong.length > 0) process.exitCode = 1
})

/* Until the page has read its data. */
exports.ready = page => page.waitForSelector('html[data-ready]')

/* Until the page has drawn what it was told before. */
const drawn = page => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))))
exports.drawn = drawn

/* The canvas of a view, as it stands once the page has drawn what it was told before. */
exports.picture = async page => {
    await drawn(page)
    return (await page.locator('canvas').first().screenshot()).toString('base64')
}

/* The page on a screen with other features, or of another size: it is told so with its next picture. */
exports.media = async (page, features) => {
    await page.emulateMedia(features)
    await drawn(page)
}
exports.size = async (page, width, height) => {
    await page.setViewportSize({ width, height })
    await drawn(page)
}

/* The page's address in its query, decoded. */
exports.hash = async page => new URLSearchParams((await page.evaluate(() => location.hash)).slice(1))

/* The page at another address, without loading it again. */
exports.open = (page, address) => page.evaluate(hash => new Promise(done => {
    document.activeElement.blur()
    if (location.hash === hash) return done()
    addEventListener('hashchange', () => done(), { once: true })
    location.hash = hash
}), `#${address}`)
