/* speedscope.cjs FILE...: opens each file in speedscope and prints what it made of it: for each of
 * its profiles the file, the name, the unit, the sum of all weights, and, of a timeline, that of ops
 * outside of sweeps and that of sweeps. Files of speedscope's own are held to its schema first. */
const fs = require('fs')
const path = require('path')
const { pathToFileURL } = require('url')
const Ajv = require('ajv')
const { browse } = require('./browse.cjs')

const release = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist/release')

const check = file => {
    const schema = JSON.parse(fs.readFileSync(path.join(release, 'file-format-schema.json')))
    const ajv = new Ajv({ strict: false, allErrors: true })
    const document = JSON.parse(fs.readFileSync(file))
    if (!ajv.validate(schema, document))
        throw new Error(`${file} is not as the schema says: ${ajv.errorsText()}`)
}

/* The time within frames that are `wanted` and within none that is `not`. */
const within = (profile, names, wanted, not) => {
    let inside = 0, outside = 0, sum = 0, from = 0
    for (const event of profile.events) {
        const name = names[event.frame], step = event.type === 'O' ? 1 : -1
        const was = inside > 0 && outside === 0
        if (wanted(name)) inside += step
        if (not(name)) outside += step
        const is = inside > 0 && outside === 0
        if (is && !was) from = event.at
        if (was && !is) sum += event.at - from
    }
    return sum
}

const any = () => true, none = () => false
const isSweep = name => /^sweep .*exports\.c:/.test(name)
const isOp = name => !isSweep(name) && /exports\.c:/.test(name)

/* The whole, ops outside of sweeps, sweeps: speedscope saves every profile as a timeline. */
const totals = (profile, names) =>
    [[any, none], [isOp, isSweep], [isSweep, none]].map(([wanted, not]) =>
        within(profile, names, wanted, not))

/* What speedscope saves again is its own view of the file. */
const open = async (page, file) => {
    await page.setInputFiles('input[type=file]', file)
    await page.getByText(/Export|Something went wrong/).waitFor()
    const download = page.waitForEvent('download')
    await page.getByText('Export').click()
    const saved = JSON.parse(fs.readFileSync(await (await download).path()))
    const names = saved.shared.frames.map(frame => frame.name)
    for (const profile of saved.profiles)
        console.log([path.basename(file), profile.name, profile.unit,
                     ...totals(profile, names)].join('\t'))
}

const main = async files => {
    files.filter(file => file.endsWith('.speedscope.json')).forEach(check)
    const start = pathToFileURL(path.join(release, 'index.html')).href
    await browse(start, async page => {
        for (const file of files) {
            await page.goto(start)
            await open(page, file)
        }
    })
}

main(process.argv.slice(2)).catch(error => {
    console.error(error.message)
    process.exitCode = 1
})
