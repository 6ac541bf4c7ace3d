/* pictures.cjs: pictures of pages of `tapescope html`: pictures.cjs FOLDER, with lines of fields
 * on standard input, between tabs: NAME, PAGE, ADDRESS in the page, HEIGHT, a TEXT that the page
 * shows there, without which the picture does not show what it is for, and a BUTTON
 * and KEYS to press first. FOLDER/NAME.png is in light
 * colours, as wide as a column of text shows well. */
const { browse, drawn, media, ready, size } = require('./browse.cjs')
const { pathToFileURL } = require('url')
const { join } = require('path')
const lines = require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean)

browse('about:blank', async page => {
    await media(page, { colorScheme: 'light', reducedMotion: 'reduce' })
    for (const line of lines) {
        const [name, file, address, height, text, button, keys] = line.split('\t')
        await size(page, 1200, Number(height))
        await page.goto('about:blank')
        await page.goto(`${pathToFileURL(file).href}#${address}`)
        await ready(page)
        if (button) await page.click(`button:has-text("${button}")`)
        if (button) await page.locator('body').evaluate(() => document.activeElement.blur())
        for (const key of keys ?? '') await page.keyboard.press(key)
        await drawn(page)
        await page.screenshot({ path: join(process.argv[2], `${name}.png`) })
        if (text && (await page.locator('body').innerText()).replace(/\s+/g, ' ').includes(text)) continue
        console.error(`${name}: the page does not show '${text}'`)
        process.exitCode = 1
    }
})
