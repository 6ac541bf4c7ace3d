/* several.cjs: the diff of several runs a side: several.cjs PAGE all|none, of whose changes all or none may be
 * chance. Its text says of how many runs the numbers are means; a change that may be chance is grey and
 * "~", and no other is. Prints what is wrong, or "several: ok". */
const { browse, open, ready } = require('./browse.cjs')
const { readFileSync } = require('fs')
const { gunzipSync } = require('zlib')
const { pathToFileURL } = require('url')

const [file, which] = process.argv.slice(2)
const { diff } = JSON.parse(gunzipSync(Buffer.from(/id="profile-data">([^<]*)</.exec(readFileSync(file, 'utf8'))[1], 'base64')))
const failures = []
const check = (good, text) => {
    if (!good) failures.push(text)
}

browse(pathToFileURL(file).href, async page => {
    await ready(page)
    await open(page, 'view=diff&metric=forward')
    const said = await page.locator('main .note').first().innerText()
    check(said.includes(`in the base, the mean of ${diff.base_runs} runs;`), `the base is no mean: ${said}`)
    check(/~ and grey: may be chance\.$/.test(said), `nothing is said of chance: ${said}`)
    const of = (side, i) => diff.rows[`${side}_forward_ns`]?.[i] ?? 0
    const wanted = diff.rows.in.map((_, i) => of('new', i) - of('base', i)).map((change, i) => [change, Math.abs(change) < diff.chance.forward[i]]).filter(([change]) => change !== 0)
    const shown = await page.locator('main table tbody td:nth-child(3)').evaluateAll(all => all.map(cell => [/^~ /.test(cell.textContent), cell.querySelector('.bar')?.classList.contains('gray') ?? null]))
    const n = wanted.filter(([, chance]) => chance).length
    check(wanted.length > 0 && n === (which === 'all' ? wanted.length : 0), `${n} of ${wanted.length} changes may be chance`)
    check(shown.length === wanted.length, `${shown.length} rows of ${wanted.length}`)
    check(shown.filter(([mark]) => mark).length === n, `${shown.filter(([mark]) => mark).length} changes are marked, ${n} may be chance`)
    for (const [mark, grey] of shown) check(grey === null || grey === mark, `a change is ${mark ? '' : 'not '}marked, and ${grey ? '' : 'not '}grey`)
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('several: ok')
    else process.exitCode = 1
})
