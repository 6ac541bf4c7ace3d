/* columns.cjs: columns.cjs PAGE HEAD,...: the table of lines on the summary of PAGE has these columns,
 * with something in each, and the lines can be sorted by each of these metrics. Beside the source stand
 * columns of calls and bytes only if there are any, and one of other code if there is some. Prints what
 * is wrong, or "columns: ok". */
const { browse, open, ready } = require('./browse.cjs')
const { readFileSync } = require('fs')
const { gunzipSync } = require('zlib')
const { pathToFileURL } = require('url')
const [file, wanted] = process.argv.slice(2)

browse(pathToFileURL(file).href, async page => {
    const failures = []
    await ready(page)
    await open(page, 'view=summary')
    const heads = (await page.locator('main thead th').allInnerTexts()).map(text => text.trim().toLowerCase())
    const metrics = await page.locator('#metric option').allInnerTexts()
    for (const head of wanted.split(',')) {
        const at = heads.findIndex(text => text.startsWith(head))
        if (at < 0) failures.push(`no column ${head} among ${heads}`)
        else if (!(await page.locator(`main tbody tr > :nth-child(${at + 1})`).allInnerTexts()).some(text => /[0-9]/.test(text)))
            failures.push(`nothing in the column ${head}`)
    }
    if (!metrics.includes('Waiting')) failures.push(`no metric Waiting among ${metrics}`)
    const { lines } = JSON.parse(gunzipSync(Buffer.from(/id="profile-data">([^<]*)</.exec(readFileSync(file, 'utf8'))[1], 'base64')))
    const some = name => (lines[name] ?? []).some(value => value > 0)
    await open(page, 'view=source')
    const beside = await page.locator('main .src.head .g').allInnerTexts()
    for (const [head, column] of [['calls', 'calls'], ['tape', 'calls'], ['peak', 'calls'], ['other', 'other_ns']])
        if (beside.includes(head) !== some(column)) failures.push(`beside the source are ${beside}, and ${column} is ${some(column) ? '' : 'not '}there`)
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('columns: ok')
    else process.exitCode = 1
})
