/* views.cjs: pages of `tapescope html` of every kind: views.cjs [--axe | --turns] PAGE... Each view of each
 * opens, in both themes, at the width of a desk and of a telephone, with something to read that is
 * no slip of the program, nothing wider than the screen, and no text that is cut or over another; by --axe there is also no fault of
 * any class that axe-core knows, and a reload shows the same. By --turns every second page is in
 * the one theme and width, the others in the other. With TAPESCOPE_EXHAUSTIVE in the environment
 * axe looks at each theme at each width, and no page takes turns. Prints what is wrong, or "views: ok". */
const { browse, media, open, ready, size } = require('./browse.cjs')
const { pathToFileURL } = require('url')
const axe = require('fs').readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

const VIEWS = ['summary', 'flame', 'source', 'timeline', 'residuals', 'whatif', 'roofline', 'diff', 'growth', 'patterns']
const MODES = ['calls', 'inverted', 'mirror']
const files = process.argv.slice(2).filter(argument => !argument.startsWith('--'))
const withAxe = process.argv.includes('--axe')
const whole = Boolean(process.env.TAPESCOPE_EXHAUSTIVE)
const turns = process.argv.includes('--turns') && !whole
const failures = []

const check = (good, text) => {
    if (!good) failures.push(text)
}

browse('about:blank', async page => {
    let at = ''
    page.on('console', message => {
        if (message.type() === 'error') failures.push(`${at}: console: ${message.text()}`)
    })
    page.on('dialog', dialog => {
        failures.push(`${at}: dialog: ${dialog.message()}`)
        return dialog.dismiss()
    })
    page.on('pageerror', error => failures.push(`${at}: ${error.message}`))
    for (const file of files) {
        at = file
        await size(page, 1440, 900)
        await page.goto(pathToFileURL(file).href)
        await ready(page)
        await everyViewOpens(page, file, where => (at = where))
        if (withAxe) await theAddressSurvives(page, file)
        if (/patterns.html$/.test(file)) await patternsAreShown(page)
    }
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('views: ok')
    else process.exitCode = 1
})

async function everyViewOpens(page, file, say) {
    const addresses = VIEWS.map(view => `view=${view}`).concat(MODES.slice(1).map(mode => `view=flame&mode=${mode}`), withAxe ? [] : 'view=source&metric=lifetime')
    const screens = [['light', 1440], ['dark', 390]].concat(withAxe && whole ? [['light', 390], ['dark', 1440]] : []).filter((_, i) => !turns || i === files.indexOf(file) % 2)
    for (const [theme, width] of screens) {
        await media(page, { colorScheme: theme, reducedMotion: 'reduce' })
        await size(page, width, 900)
        for (const address of addresses) {
            const where = `${file} ${address} ${theme} ${width}`
            say(where)
            await open(page, address)
            await page.evaluate(() => document.querySelectorAll('main details').forEach(one => (one.open = true)))
            const text = await page.locator('main').innerText()
            check(text.trim().length > 20, `${where}: empty`)
            check(!/\b0 to 1\sns|\bfor – |\(–\)/.test(text), `${where}: shows a time that is not known`)
            const unread = await page.evaluate(textsThatCannotBeRead)
            check(unread.length === 0, `${where}: cannot be read: ${unread}`)
            check(!/\bNaN\b|\bundefined\b|\bInfinity\b|\[object |– times|\b1 (calls|samples|records)\b/.test(text), `${where}: shows ${/.{0,30}(NaN|undefined|Infinity|\[object|– times|\b1 (calls|samples|records)\b).{0,20}/.exec(text)?.[0]}`)
            const wide = await page.evaluate(() => document.documentElement.scrollWidth)
            check(wide <= width, `${where}: ${wide} wide`)
            const tall = await page.evaluate(() => document.documentElement.scrollHeight)
            check(tall <= 900, `${where}: the window scrolls as well as the view: ${tall} high`)
            if (!withAxe) continue
            if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe)
            const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }))
            for (const fault of found.violations)
                failures.push(`${where}: ${fault.id}: ${fault.nodes[0].html} ${fault.nodes[0].failureSummary}`)
        }
    }
    await media(page, { colorScheme: 'light' })
    await size(page, 1440, 900)
}

/* Those of tests/programs/patterns.c: a table, and the picture of the one that is chosen, by its row or by Enter. */
async function patternsAreShown(page) {
    await open(page, 'view=patterns')
    const rows = page.locator('main tbody tr')
    const heading = () => page.locator('main h2').first().innerText()
    check((await rows.count()) === 3, `${await rows.count()} patterns`)
    const text = await page.locator('main tbody').innerText()
    for (const part of ['95 × 96', '190', '96 × 96', '5 × 5', '36.0', '–']) check(text.includes(part), `patterns: no ${part}: ${text}`)
    check(/^Jacobian of patterns.c:/.test(await heading()), `patterns: ${await heading()}`)
    const box = () => page.locator('main svg.pattern').getAttribute('viewBox')
    const cells = () => page.locator('main svg.pattern path').evaluateAll(all => all.reduce((n, one) => n + one.getAttribute('d').split('M').length - 1, 0))
    check((await box()) === '0 0 64 64', `patterns: a picture of ${await box()}`)
    await rows.filter({ hasText: '5 × 5' }).focus()
    await page.keyboard.press('Enter')
    check((await box()) === '0 0 5 5' && (await cells()) === 9, `patterns: ${await cells()} cells in ${await box()}`)
    await rows.filter({ hasText: 'Hessian' }).click()
    check(/^Hessian/.test(await heading()), `patterns: ${await heading()}`)
}

/* On the page: texts that are wider than what they are in, where nothing scrolls, and of charts' axes those
 * that run into others. */
function textsThatCannotBeRead() {
    const cut = [...document.querySelectorAll('main *')].filter(one => {
        const style = getComputedStyle(one)
        return one.innerText?.trim() && style.overflowX === 'hidden' && style.textOverflow !== 'ellipsis' && !one.matches('.hidden, .flame-scroll')
            && one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1
    }).map(one => one.innerText)
    const over = [...document.querySelectorAll('main svg')].flatMap(chart => {
        const all = [...chart.querySelectorAll('.tick')].map(one => [one.textContent, one.getBoundingClientRect()])
        return all.filter(([, a], i) => all.some(([, b], k) => k > i && a.left < b.right && b.left < a.right && a.top < b.bottom - 4 && b.top < a.bottom - 4)).map(([text]) => text)
    })
    const search = /** @type {HTMLInputElement} */ (document.getElementById('search'))
    const { paddingLeft, paddingRight, font } = getComputedStyle(search)
    const pen = document.createElement('canvas').getContext('2d')
    pen.font = font
    const room = search.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)
    return cut.concat(over, pen.measureText(search.placeholder).width > room ? [search.placeholder] : [])
}

/* View, metric, selection and search are there again after a reload, in every view. */
async function theAddressSurvives(page, file) {
    await open(page, 'view=summary')
    const keys = await page.locator('main tbody tr.link .key').allInnerTexts()
    const rest = `${keys.length ? `&sel=${encodeURIComponent(keys[0])}` : ''}&q=a.*`
    for (const view of VIEWS) {
        const address = `${view === 'summary' ? '' : `view=${view}&`}metric=calls${rest}`
        await open(page, address)
        const shown = () => page.evaluate(() => [document.querySelector('[aria-selected=true][role=tab]').id, document.getElementById('metric').value,
            document.getElementById('search').value, document.querySelector('.strip').innerText, document.querySelector('.match').innerText, location.hash].join('|'))
        const before = await shown()
        await page.reload()
        await ready(page)
        const after = await shown()
        check(before === after, `${file} ${view}: a reload shows '${after}', before '${before}'`)
        check(!keys.length || (await page.locator('.strip').isVisible()), `${file} ${view}: the selection is lost`)
    }
}
