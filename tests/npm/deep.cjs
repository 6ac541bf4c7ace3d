/* deep.cjs: deep.cjs WHOLE CUT WARNING: the pages of test_html_deep.sh, whose program has more call paths
 * than a tape has rows; CUT has no paths, and its events end early. Prints what is wrong, or "deep: ok". */
const { browse, drawn, media, open, ready, size } = require('./browse.cjs')
const { readFileSync, writeFileSync } = require('fs')
const { gunzipSync, gzipSync } = require('zlib')
const { pathToFileURL } = require('url')

const [whole, cut, warning] = process.argv.slice(2)
const failures = []
const check = (good, text) => {
    if (!good) failures.push(text)
}
const data = file => JSON.parse(gunzipSync(Buffer.from(/id="profile-data">([^<]*)</.exec(readFileSync(file, 'utf8'))[1], 'base64')))
const sum = column => column.reduce((a, b) => a + b, 0)

/* What is in the file: who calls is known to the outermost, of all phases there is all. */
function treeIsWhole({ tree, strings, total, profile, warnings, timeline }) {
    check([profile.warning, ...warnings].includes(warning), `warnings are ${profile.warning}, ${warnings}`)
    const callers = depth => {
        const of = new Map()
        const path = i => (i === 0 ? [] : [...path(tree.parent[i]), strings[tree.function[i]]])
        for (let i = 1; i < tree.parent.length; i++) {
            const key = path(i).slice(0, depth).join(' ')
            of.set(key, (of.get(key) ?? 0) + tree.calls[i])
        }
        return of
    }
    const share = (of, key) => (of.get(key) ?? 0) / total.calls
    check(total.calls > 190000, `only ${total.calls} calls`)
    check(share(callers(2), 'main layer_0') > 0.99, `calls within main and layer_0: ${share(callers(2), 'main layer_0')}`)
    for (const next of ['layer_1', 'layer_2']) /* half of them each */
        check(Math.abs(share(callers(3), `main layer_0 ${next}`) - 0.5) < 0.01, `calls within ${next}: ${share(callers(3), `main layer_0 ${next}`)}`)
    check(timeline.bins >= 1000, `${timeline.bins} bins`)
    check(timeline.events_left_out === 0, `${timeline.events_left_out} events are left out`)
    check(sum(timeline.cells.ns) === total.forward_ns + total.backward_ns, `phases have ${sum(timeline.cells.ns)} ns`)
}

browse('about:blank', async page => {
    treeIsWhole(data(whole))
    const { timeline } = data(cut)
    check(timeline.bins >= 1000, `${timeline.bins} bins where events end early`)
    check(timeline.events_left_out > 0 && timeline.events_end_ns > 0, 'no event is left out')
    for (const file of [whole, cut]) {
        await page.goto('about:blank')
        await page.goto(pathToFileURL(file).href)
        await ready(page)
        await open(page, 'view=summary')
        if (file === whole) check((await page.locator('.notice').innerText()).includes(warning), 'the warning is not on the summary')
        else check(/Nothing stands out[^]*layer_\d+ \d/.test(await page.locator('.findings').innerText()), 'no functions are named')
        for (const [theme, width] of [['light', 1440], ['dark', 390]]) {
            await media(page, { colorScheme: theme, reducedMotion: 'reduce' })
            await size(page, width, 900)
            await open(page, 'view=timeline')
            await drawn(page)
            await cutOffIsHatched(page, file, `${file} ${theme} ${width}`)
        }
    }
    await cutReplaysAreSaid(page)
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('deep: ok')
    else process.exitCode = 1
})

/* There is no room for all changes of the tape: the views that replay them say so. Those of a page that is
 * made of it, whose replay is whole, do not. */
async function cutReplaysAreSaid(page) {
    const document = data(whole), other = whole.replace(/\.html$/, '-other.html')
    check(document.whatif.truncated && document.space.truncated && document.whatif.tape_peak_bytes !== document.whatif.peak_bytes, 'the replay is whole')
    document.whatif.truncated = document.space.truncated = false
    document.whatif.tape_peak_bytes = document.whatif.peak_bytes
    const packed = gzipSync(JSON.stringify(document)).toString('base64')
    writeFileSync(other, readFileSync(whole, 'utf8').replace(/(id="profile-data">)[^<]*/, (_, before) => before + packed))
    for (const [view, text] of [['whatif', 'The replay ends before the tape was emptied'], ['whatif', "The replay's peak is not the tape's"], ['residuals', 'The changes of the tape end before it was emptied']])
        for (const file of [whole, other]) {
            await page.goto('about:blank')
            await page.goto(`${pathToFileURL(file).href}#view=${view}`)
            await ready(page)
            check((await page.locator('main').innerText()).includes(text) === (file === whole), `${file}, ${view}: '${text}' is ${file === whole ? 'not ' : ''}said`)
        }
}

/* Of the lane of phases, at its lower edge: how often the colour changes in the last fifth of the time. */
async function cutOffIsHatched(page, file, where) {
    const canvas = page.locator('canvas.time-canvas')
    const isCut = (await canvas.getAttribute('data-cut')) === 'true'
    const notes = await page.locator('main').innerText()
    check(isCut === (file === cut), `${where}: the picture ${isCut ? 'ends early' : 'is whole'}`)
    check(/\(hatched\)/.test(notes) === (file === cut), `${where}: the notes say otherwise`)
    const changes = await canvas.evaluate(one => {
        const ratio = devicePixelRatio
        const y = Math.round((16 + 240 + 6 + 13) * ratio) // as time_canvas.js arranges it
        const from = Math.round(one.width * 0.8), n = one.width - from - Math.round(16 * ratio)
        const { data } = one.getContext('2d').getImageData(from, y, n, 1)
        let changes = 0
        for (let i = 4; i < data.length; i += 4) changes += Math.abs(data[i] - data[i - 4]) > 12
        return changes / n
    })
    if (file === cut) check(changes > 0.1, `${where}: no hatching, ${changes}`)
}
