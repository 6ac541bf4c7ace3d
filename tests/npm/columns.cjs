/* columns.cjs: columns.cjs PAGE HEAD,...: the table of lines on the summary of PAGE has these columns,
 * with something in each, and the lines can be sorted by each of these metrics. Prints what is
 * wrong, or "columns: ok". */
const { browse, open, ready } = require('./browse.cjs')
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
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('columns: ok')
    else process.exitCode = 1
})
