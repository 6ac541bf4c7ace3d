/* dh_view.cjs PAGE FILE: opens the file in valgrind's dh_view.html and prints the text that it makes
 * of it. */
const { pathToFileURL } = require('url')
const { browse } = require('./browse.cjs')

const [page, file] = process.argv.slice(2)

browse(pathToFileURL(page).href, async view => {
    await view.setInputFiles('input[type=file]', file)
    await view.waitForFunction(() => /Invocation |[Ee]rror|[Ee]xception/.test(document.body.innerText))
    console.log(await view.innerText('body'))
}).catch(error => {
    console.error(error.message)
    process.exitCode = 1
})
