// Checks of the built site, which fail the build.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { posix, resolve } from 'node:path'

// checkSite checks that each link inside the site leads to a page, and to an anchor of it, and that no page loads anything from another
// server.
export function checkSite(folder, base) {
  const pages = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.html') && name !== '404.html')
  const contents = new Map(pages.map((page) => [page, readFileSync(resolve(folder, page), 'utf8')]))
  const anchors = new Map([...contents].map(([page, text]) => [page, new Set([...text.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]))]))
  const problems = []

  for (const [page, text] of contents) {
    for (const [, address] of text.matchAll(/<(?:script|img|iframe|source)[^>]* src="([^"]+)"/g)) {
      if (/^(https?:)?\/\//.test(address)) problems.push(`${page} loads ${address}`)
    }

    for (const [link] of text.matchAll(/<link [^>]*href="(https?:)?\/\/[^"]*"[^>]*>/g)) problems.push(`${page} loads ${link}`)

    for (const [, address] of text.matchAll(/<a [^>]*href="([^"]*)"/g)) {
      if (/^[a-z]+:/.test(address)) continue

      const [path, anchor] = address.split('#')
      let target = path === '' ? page : path.startsWith(base) ? path.slice(base.length) : posix.join(posix.dirname(page), path)
      if (target === '' || target.endsWith('/')) target += 'index.html'

      const file = resolve(folder, target)
      if (!existsSync(file) || !statSync(file).isFile()) problems.push(`${page} links to ${address}, which does not exist`)
      else if (anchor && anchors.has(target) && !anchors.get(target).has(decodeURIComponent(anchor))) {
        problems.push(`${page} links to ${address}, whose page has no such heading`)
      }
    }
  }

  if (pages.length < 20) problems.push(`only ${pages.length} pages were built`)
  if (problems.length > 0) throw new Error('the site has problems:\n' + [...new Set(problems)].join('\n'))
}
