/* run.cjs: several drivers in one browser, one after the other: run.cjs OUT NAME.cjs ARGUMENT... [-- OUT
 * NAME.cjs ARGUMENT...]..., each as `node NAME.cjs ARGUMENT...` with its standard output in the file
 * OUT as well. The status is 0 if it is so for all. */
const { appendFileSync, writeFileSync } = require('fs')
const { join } = require('path')
const { format } = require('util')
const browsing = require('./browse.cjs')

const groups = [[]]
for (const word of process.argv.slice(2)) {
    if (word === '--') groups.push([])
    else groups.at(-1).push(word)
}

browsing.hold(async () => {
    for (const [out, name, ...rest] of groups) {
        const script = join(__dirname, name)
        writeFileSync(out, '')
        console.log = (...values) => {
            process.stdout.write(`${format(...values)}\n`)
            appendFileSync(out, `${format(...values)}\n`)
        }
        process.argv = [process.argv[0], script, ...rest]
        delete require.cache[script]
        require(script)
        while (browsing.last) {
            const waited = browsing.last
            await waited
            if (browsing.last === waited) browsing.last = null
        }
    }
}).catch(error => {
    console.error(error.stack)
    process.exitCode = 1
})
