/* view.cjs: visits `tapescope view` as browsers, other sites' pages and strangers would:
 * view.cjs TAPESCOPE, in a folder with tapescope.prof, and with what is to be served as it was
 * written by `html` and `export`, in a folder `wanted`. Prints what is wrong, or "view: ok". */
const { browse, hold } = require('./browse.cjs')
const { spawn } = require('child_process')
const fs = require('fs')
const http = require('http')
const net = require('net')

const program = process.argv[2]
const PERFETTO = 'https://ui.perfetto.dev'
const NAMES = ['report.html', 'trace.perfetto-trace', 'trace.json', 'profile.speedscope.json', 'profile.prof']
const failures = []
const servers = []

function check(good, text) {
    if (!good) failures.push(text)
}

/* Starts the program. link: the line that it prints, or null if it prints none; ended: its status
 * and what it said. */
async function start(...args) {
    const child = spawn(program, ['view', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    servers.push(child)
    let said = ''
    child.stderr.on('data', data => (said += data))
    const ended = new Promise(done => child.on('close', (status, signal) => done({ status, signal, said })))
    let printed = ''
    const link = await new Promise(done => {
        child.stdout.on('data', data => {
            printed += data
            if (printed.includes('\n')) done(printed.slice(0, printed.indexOf('\n')))
        })
        child.stdout.on('end', () => done(null))
    })
    const address = /http:\/\/127\.0\.0\.1:(\d+)\/([0-9a-f]{32})\//.exec(link ?? '')
    return { child, ended, link, folder: address?.[0], port: Number(address?.[1]), token: address?.[2] }
}

/* One request, whatever it says of itself. */
function ask(server, path, { method = 'GET', headers = {} } = {}) {
    return new Promise((done, failed) => {
        const request = http.request({
            host: '127.0.0.1', port: server.port, method, path, setHost: false, agent: false,
            headers: { host: `127.0.0.1:${server.port}`, ...headers },
        }, answer => {
            const parts = []
            answer.on('data', part => parts.push(part))
            answer.on('error', failed)
            answer.on('end', () => done({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts) }))
        })
        request.on('error', failed)
        request.end()
    })
}

const get = (server, name, more) => ask(server, `/${server.token}/${name}`, more)

/* Sends bytes and, unless the connection is to stay, the end, and goes away soon; resolves when the
 * connection is closed. */
function send(port, bytes, stays = false) {
    return new Promise(done => {
        const socket = net.connect(port, '127.0.0.1', () => (stays ? socket.write(bytes) : socket.end(bytes)))
        if (!stays) socket.setTimeout(100, () => socket.destroy())
        socket.on('error', () => {})
        socket.on('close', done)
        socket.resume()
    })
}

async function whatIsServedIsWhatIsWritten(server) {
    for (const name of NAMES) {
        const { status, headers, body } = await get(server, name)
        const wanted = fs.readFileSync(`wanted/${name}`)
        check(status === 200 && body.equals(wanted), `${name}: status ${status}, ${body.length} bytes, not ${wanted.length}`)
        for (const [key, value] of [['x-content-type-options', 'nosniff'], ['cache-control', 'no-store'], ['referrer-policy', 'no-referrer'], ['cross-origin-resource-policy', 'same-origin']])
            check(headers[key] === value, `${name}: ${key} is ${headers[key]}`)
        check((headers['content-disposition'] === 'attachment') === (name !== 'report.html'), `${name}: content-disposition`)
        check(name !== 'report.html' || !headers['content-security-policy'], 'another policy than the page has')
        check(!headers['access-control-allow-origin'], `${name}: other sites may read it`)
        const head = await get(server, name, { method: 'HEAD' })
        check(head.status === 200 && head.body.length === 0 && head.headers['content-length'] === String(wanted.length), `HEAD of ${name}`)
    }
    const list = (await get(server, '')).body.toString()
    for (const name of NAMES) check(list.includes(`href="${name}"`), `${name} is not in the list`)
}

async function nobodyElseIsServed(server) {
    const own = `/${server.token}/report.html`
    const other = server.token.replace(/^./, c => (c === '0' ? '1' : '0'))
    const mine = `127.0.0.1:${server.port}`
    for (const [wanted, path, how] of [
        [404, '/'], [404, '/report.html'], [404, `/${server.token}`], [404, `/${other}/report.html`], [404, `/${server.token.slice(1)}/report.html`],
        [404, `/${server.token}/report.htm`], [404, `/${server.token}/report.html/`], [404, `/${server.token}//report.html`], [404, `/${server.token}/../report.html`],
        [404, `/${server.token}/%72eport.html`], [404, `/${server.token.toUpperCase()}A/report.html`], [404, `/${server.token}/../../etc/passwd`],
        [405, own, { method: 'POST' }], [405, own, { method: 'PUT' }], [405, own, { method: 'DELETE' }], [405, own, { method: 'OPTIONS' }], [404, `/${other}/`, { method: 'POST' }],
        [403, own, { headers: { host: `tapescope.example:${server.port}` } }], [403, own, { headers: { host: '127.0.0.1' } }], [403, own, { headers: { host: `127.0.0.1.example:${server.port}` } }],
        [403, own, { headers: { host: `127.0.0.1:${server.port}0` } }], [200, own, { headers: { host: `LocalHost:${server.port}` } }],
        [403, own, { headers: { origin: 'https://tapescope.example' } }], [403, own, { headers: { origin: 'null' } }], [403, own, { headers: { origin: PERFETTO } }],
        [403, own, { headers: { origin: `https://${mine}` } }], [200, own, { headers: { origin: `http://${mine}` } }],
        [403, `/${server.token}/trace.perfetto-trace`, { headers: { origin: PERFETTO } }], [403, `/${server.token}/trace.perfetto-trace`, { method: 'OPTIONS', headers: { origin: PERFETTO } }],
    ]) {
        const { status, headers, body } = await ask(server, path, how)
        check(status === wanted, `${JSON.stringify([path, how])}: ${status}, not ${wanted}`)
        check(status === 200 || body.length < 64, `${JSON.stringify([path, how])}: ${body}`)
        check(status !== 405 || headers.allow === 'GET, HEAD', 'which methods there are is not said')
    }
    for (const [file, own] of [['/proc/net/tcp', '0100007F'], ['/proc/net/tcp6', null]]) {
        const port = server.port.toString(16).toUpperCase().padStart(4, '0')
        const listening = fs.existsSync(file) ? fs.readFileSync(file, 'latin1').split('\n').map(line => line.trim().split(/\s+/)).filter(part => part[3] === '0A' && part[1].endsWith(`:${port}`)) : []
        check(listening.length === (own ? 1 : 0) && listening.every(part => part[1] === `${own}:${port}`), `${file}: listens at ${listening.map(part => part[1])}`)
    }
}

/* Random bytes, whole requests with some changed, and heads that do not end. */
async function anyBytesAreTaken(server) {
    let state = 20240607
    const random = n => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0
        return Math.floor(state / 2 ** 32 * n)
    }
    const good = Buffer.from(`GET /${server.token}/report.html HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nContent-Length: 3\r\nAccept: */*\r\n\r\nabc`)
    for (let round = 0; round < 20; round++)
        await Promise.all(Array.from({ length: 16 }, (_, i) => {
            const bytes = i % 2 === 0 ? Buffer.from(good) : Buffer.alloc(random(2000), 0)
            for (let n = i % 2 === 0 ? 1 + random(8) : bytes.length; n > 0; n--) bytes[random(bytes.length)] = random(256)
            return send(server.port, bytes.subarray(0, random(4) === 0 ? random(bytes.length) : bytes.length))
        }))
    await send(server.port, `GET / HTTP/1.1\r\n${'X: y\r\n'.repeat(20000)}`)
    await send(server.port, `GET /${'a'.repeat(1 << 20)}`)
    check((await get(server, 'report.html')).status === 200, 'the server has had enough of random bytes')
}

/* A page of another site, as that site's server would send it; what it reads of the address. */
async function siteReads(site, url) {
    let got
    const page = `${site}/`
    await browse('about:blank', async blank => {
        const context = await blank.context().browser().newContext({ permissions: ['local-network-access'] })
        const there = await context.newPage()
        await there.route(`${site}/**`, route => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>x</title>' }))
        await there.goto(page)
        got = await there.evaluate(url => fetch(url).then(answer => answer.arrayBuffer()).then(bytes => bytes.byteLength, error => String(error)), url)
    })
    return got
}

/* The port is one for all of the machine: others may have it for a while. */
async function perfettoReadsTheTimeline() {
    for (let tries = 0; ; tries++) {
        const other = net.createServer()
        const held = await new Promise(done => other.once('error', () => done(false)).listen(9001, '127.0.0.1', () => done(true)))
        if (held) {
            const refused = await start('--perfetto')
            if (refused.link !== null) refused.child.kill()
            const { status, said } = await refused.ended
            await new Promise(done => other.close(done))
            check(refused.link === null && status === 1 && said === "tapescope: view: port 9001 of 127.0.0.1 is taken, and Perfetto's page reads from no other\n", `port 9001 taken: status ${status}, '${said}'`)
        }
        const server = held ? await start('--perfetto', '--once', '--no-browser') : { link: null }
        if (!server.link && tries < 120) {
            await new Promise(done => setTimeout(done, 500))
            continue
        }
        check(server.link === `${PERFETTO}/#!/?url=http://127.0.0.1:9001/${server.token}/trace.perfetto-trace`, `Perfetto's link is ${server.link}`)
        if (!server.link) return
        const wanted = fs.readFileSync('wanted/trace.perfetto-trace')
        const ours = { headers: { origin: PERFETTO } }
        for (const name of NAMES.filter(name => name !== 'trace.perfetto-trace')) check((await get(server, name, ours)).status === 403, `Perfetto's page may read ${name}`)
        check((await get(server, 'report.html')).status === 200, 'no report with --perfetto')
        const asked = await get(server, 'trace.perfetto-trace', { method: 'OPTIONS', ...ours })
        check(asked.status === 204 && asked.headers['access-control-allow-origin'] === PERFETTO && asked.headers['access-control-allow-private-network'] === 'true', "Perfetto's page may not ask")
        check((await get(server, 'trace.perfetto-trace', { headers: { origin: `${PERFETTO}.example` } })).status === 403, 'another site may read the timeline')
        check(/Failed to fetch/.test(await siteReads('https://tapescope.example', `${server.folder}trace.perfetto-trace`)), 'another site reads the timeline')
        const got = await siteReads(PERFETTO, `${server.folder}trace.perfetto-trace`)
        check(got === wanted.length, `Perfetto's page reads ${got}, not ${wanted.length} bytes`)
        const end = await server.ended
        check(end.status === 0, `--perfetto --once: status ${end.status}: ${end.said}`)
        return
    }
}

async function itEnds() {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
        const server = await start()
        server.child.kill(signal)
        const end = await server.ended
        check(end.status === 0 && end.signal === null, `${signal}: status ${end.status}, signal ${end.signal}`)
    }
    const once = await start('--once', '--port', '0')
    await get(once, 'report.html', { method: 'HEAD' })
    await get(once, 'trace.json')
    await ask(once, '/report.html')
    check((await get(once, 'report.html')).body.equals(fs.readFileSync('wanted/report.html')), '--once: another page')
    check((await once.ended).status === 0, '--once: not status 0')
    const nobody = await start('--timeout', '0.5')
    const end = await nobody.ended
    check(end.status === 0 && end.said.includes('no visit for 0.5 s'), `--timeout: status ${end.status}, '${end.said}'`)
}

async function portsAreAsAsked(server) {
    const taken = await start('--port', String(server.port))
    const end = await taken.ended
    check(taken.link === null && end.status === 1 && end.said === `tapescope: view: port ${server.port} of 127.0.0.1 is taken\n`, `a port that is taken: status ${end.status}, '${end.said}'`)
    let first, again
    for (let tries = 0; tries < 5 && !again?.link; tries++) { // any program may take the port in between
        first = await start('--once')
        await get(first, 'report.html')
        await first.ended
        again = await start('--once', '--port', String(first.port))
    }
    check(again.port === first.port && again.token !== first.token, 'not the port that was asked for, or the same token')
    again.child.kill()
}

/* What cannot be made is not there until it can. */
async function whatCannotBeMadeIsSaid() {
    const folder = fs.mkdtempSync('temporary')
    process.env.TMPDIR = folder
    const server = await start('--no-browser')
    delete process.env.TMPDIR
    check(fs.readdirSync(folder).length === 0, 'the page has a name')
    fs.rmdirSync(folder)
    const without = await get(server, 'trace.json')
    check(without.status === 500, `without a folder for it the timeline has status ${without.status}`)
    check((await get(server, 'report.html')).status === 200, 'the page is not there any more')
    fs.mkdirSync(folder)
    check((await get(server, 'trace.json')).body.equals(fs.readFileSync('wanted/trace.json')), 'the timeline is not made again')
    fs.rmdirSync(folder)
    server.child.kill()
    const end = await server.ended
    check(end.status === 0 && end.said.includes(`view: ${folder}/tapescope-view-`), `what cannot be made: status ${end.status}, '${end.said}'`)
}

/* A server of its own, beside the others: these wait until it closes connections. */
async function apart(visits) {
    const server = await start()
    await visits(server)
    server.child.kill()
    check((await server.ended).status === 0, `${visits.name}: it does not end well`)
}

/* Who says nothing keeps nobody waiting for long, however many they are. */
async function theSilentGo(server) {
    const silent = Array.from({ length: 40 }, () => send(server.port, 'GET', true))
    check((await get(server, 'report.html')).status === 200, 'nobody is served beside the silent')
    await Promise.all(silent)
}

/* A request that never ends keeps no place, though its bytes come one by one: the server closes. */
function theSlowGo(server) {
    return Promise.all(Array.from({ length: 40 }, () => new Promise(done => {
        const socket = net.connect(server.port, '127.0.0.1')
        const timer = setInterval(() => socket.write('G'), 1000)
        socket.on('error', () => {})
        socket.on('close', () => done(clearInterval(timer)))
        socket.resume()
    })))
}

async function itIsUsedInABrowser(server) {
    await browse(server.link, async page => {
        page.on('console', message => check(message.type() !== 'error', `console: ${message.text()}`))
        await page.waitForSelector('html[data-ready]')
        await page.reload()
        await page.waitForSelector('html[data-ready]')
        check((await page.locator('main').innerText()).includes('matmul'), 'the page does not show the profile')
    })
    await browse(server.folder, async page => check((await page.locator('a').count()) === NAMES.length, 'the list has other links'))
}

async function main() {
    const waiting = [theSilentGo, theSlowGo].map(apart)
    const server = await start()
    check(server.link === `${server.folder}report.html`, `the link is ${server.link}`)
    const silent = [send(server.port, '', true), ...Array.from({ length: 8 }, () => send(server.port, 'GET / HTTP/1.1\r\nHost:', true))]
    await whatIsServedIsWhatIsWritten(server)
    await nobodyElseIsServed(server)
    await anyBytesAreTaken(server)
    await portsAreAsAsked(server)
    await itEnds()
    await whatCannotBeMadeIsSaid()
    await itIsUsedInABrowser(server)
    await perfettoReadsTheTimeline()
    await Promise.all(silent) // closed by the server
    await Promise.all(waiting)
    server.child.kill()
    check((await server.ended).status === 0, 'it does not end well')
}

hold(main).catch(error => failures.push(error.stack)).finally(() => {
    for (const child of servers) child.kill('SIGKILL')
    for (const failure of failures) console.log(`wrong: ${failure}`)
    if (failures.length === 0) console.log('view: ok')
    else process.exitCode = 1
})
