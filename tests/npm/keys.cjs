/* keys.cjs: every key that the sheet of `tapescope html` names does what the sheet says: keys.cjs
 * PAGE. Each is asserted by its effect; a key of the sheet that is not looked at here is a fault.
 * Prints what is wrong, or "keys: ok". */
const { browse, hash, media, open, picture, ready } = require('./browse.cjs')
const { pathToFileURL } = require('url')

const failures = []
const VIEWS = ['summary', 'flame', 'source', 'timeline', 'residuals', 'whatif', 'roofline', 'diff', 'growth', 'patterns']

browse(pathToFileURL(process.argv[2]).href, async page => {
    page.on('console', message => {
        if (message.type() === 'error') failures.push(`console: ${message.text()}`)
    })
    await media(page, { reducedMotion: 'reduce' })
    await ready(page)
    await page.keyboard.press('?')
    const sheet = await page.locator('dialog kbd').allInnerTexts()
    await page.keyboard.press('Escape')
    const named = sheet.flatMap(text => text.split(/\s+/)).filter(text => text !== '–')
    const looked = new Set(named.includes('1') && named.includes('9') ? ['1', '9'] : [])
    for (const [keys, works] of EFFECTS) {
        for (const key of keys) looked.add(key)
        const wrong = await works(page)
        if (wrong) failures.push(`${keys.join(' ')}: ${wrong}`)
    }
    for (const key of named) if (!looked.has(key)) failures.push(`the sheet names '${key}', which no test presses`)
    if (named.length < 20) failures.push(`the sheet names ${named.length} keys alone`)
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('keys: ok')
    else process.exitCode = 1
})

const press = async (page, ...keys) => {
    for (const key of keys) await page.keyboard.press(key)
}
const of = async (page, name) => (await hash(page)).get(name)

/* What is wrong, or nothing. */
const EFFECTS = [
    [['1', '9', '0'], async page => {
        for (const [i, view] of VIEWS.entries()) {
            await open(page, `view=${i ? 'summary' : 'flame'}`)
            await press(page, String((i + 1) % 10))
            if (((await of(page, 'view')) ?? 'summary') !== view) return `${i + 1} shows ${await of(page, 'view')}`
        }
    }],
    [['/'], async page => {
        await open(page, 'view=flame')
        await press(page, '/', 't', 'a', 'n', 'h')
        return (await of(page, 'q')) !== 'tanh' && `searches ${await of(page, 'q')}`
    }],
    [['n', 'N'], async page => {
        await open(page, 'view=flame&q=a')
        const seen = []
        for (const key of ['n', 'n', 'N']) {
            await press(page, key)
            seen.push(await of(page, 'sel'))
        }
        return (!seen[0] || seen[0] === seen[1] || seen[2] !== seen[0]) && `selects ${seen}`
    }],
    [['Esc'], async page => {
        await open(page, 'view=flame')
        await press(page, 'ArrowDown', 'ArrowDown', 'Enter')
        await press(page, '/', 'a', 'Enter')
        for (const name of ['zoom', 'q', 'sel']) {
            if (!(await of(page, name))) return `no ${name} to leave`
            await press(page, 'Escape')
            if (await of(page, name)) return `stays in ${name}`
        }
    }],
    [['←', '→', '↑', '↓'], async page => {
        await open(page, 'view=flame&mode=inverted')
        await press(page, 'ArrowDown')
        const first = await of(page, 'sel')
        await press(page, 'ArrowRight')
        const second = await of(page, 'sel')
        if (!first || first === second) return `→ selects ${second} after ${first}`
        await press(page, 'ArrowLeft')
        if ((await of(page, 'sel')) !== first) return `← selects ${await of(page, 'sel')}, not ${first}`
        await open(page, 'view=flame')
        await press(page, 'ArrowDown')
        const outer = await of(page, 'sel')
        await press(page, 'ArrowDown')
        if ((await of(page, 'sel')) === outer) return '↓ stays'
        await press(page, 'ArrowUp')
        if ((await of(page, 'sel')) !== outer) return '↑ does not go back'
        await open(page, 'view=source')
        await press(page, 'ArrowDown')
        const line = await of(page, 'sel')
        await press(page, 'ArrowDown')
        const next = await of(page, 'sel')
        await press(page, 'ArrowUp')
        return (line === next || (await of(page, 'sel')) !== line) && 'lines of the source are not walked'
    }],
    [['Enter'], async page => {
        await open(page, 'view=flame')
        await press(page, 'ArrowDown', 'ArrowDown', 'Enter')
        return !(await of(page, 'zoom')) && 'does not zoom'
    }],
    [['w', 's', 'a', 'd'], async page => {
        await open(page, 'view=flame')
        const whole = await picture(page)
        await press(page, 'w')
        const near = await picture(page)
        if (near === whole) return 'w does not zoom'
        await press(page, 'd')
        const right = await picture(page)
        if (right === near) return 'd does not move'
        await press(page, 'a')
        if ((await picture(page)) === right) return 'a does not move'
        for (let i = 0; i < 12; i++) await press(page, 's')
        return (await picture(page)) !== whole && 's does not zoom out to the whole'
    }],
    [['m', 'M'], async page => {
        await open(page, 'view=flame')
        await press(page, 'm')
        const next = await page.locator('#metric').inputValue()
        await press(page, 'M')
        const back = await page.locator('#metric').inputValue()
        return (next === back || back !== 'total') && `metrics ${next}, ${back}`
    }],
    [['c', 'i', 'f', 'x'], async page => {
        await open(page, 'view=flame')
        await press(page, 'ArrowDown')
        const before = await picture(page)
        for (const [key, mode] of [['i', 'inverted'], ['f', 'mirror'], ['x', 'sandwich'], ['c', null]]) {
            await press(page, key)
            if ((await of(page, 'mode')) !== mode) return `${key} shows ${await of(page, 'mode')}`
            if (mode && (await picture(page)) === before) return `${key} shows the same`
        }
    }],
    [['t'], async page => {
        const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
        const before = await colour()
        await press(page, 't')
        const other = await colour()
        await press(page, 't')
        if (other === before || (await colour()) !== before) return `colours ${before}, ${other}`
        await open(page, 'view=flame') // where keys go on from the selected frame
        const seen = []
        for (const key of ['ArrowDown', 't', 'ArrowDown', 't', 'ArrowUp']) {
            await press(page, key)
            seen.push(await of(page, 'sel'))
        }
        return (seen[2] === seen[0] || seen[4] !== seen[0]) && `loses its place in ${seen}`
    }],
    [['?'], async page => {
        await press(page, '?')
        const shown = await page.locator('dialog').isVisible()
        await press(page, 'Escape')
        return (!shown || (await page.locator('dialog').isVisible())) && 'no sheet that comes and goes'
    }],
]
