// The navigation of the site: the sections of docs/README.md with their links, and the ADRs.
import { readFileSync, readdirSync } from 'node:fs'
import { posix } from 'node:path'

const repository = 'https://github.com/environment-broker/environment-broker'
const docs = new URL('../', import.meta.url)
const index = readFileSync(new URL('README.md', docs), 'utf8')

// inRepository returns the address in the repository of a relative link that leaves the folder docs or does not lead to a page, else null.
export function inRepository(href, page = 'README.md') {
  if (href === '') return repository
  if (/^([a-z]+:|#|\/)/.test(href)) return null

  const [path] = href.split('#')
  const target = posix.normalize(posix.join('docs', posix.dirname(page), path))

  return target.startsWith('docs/') && target.endsWith('.md') ? null : `${repository}/blob/main/${target}`
}

// links returns an item for each link to a page in a part of the index.
function links(part) {
  return [...part.matchAll(/\[([^\]]+)\]\(([^)#\s]+\.md)\)/g)].map(([, text, link]) => ({
    text: text[0].toUpperCase() + text.slice(1),
    link: inRepository(link) ?? '/' + link.replace(/\.md$/, ''),
  }))
}

// parts splits a text at its headings of one level. It returns the text before the first heading, and each heading with its text.
function parts(text, level) {
  const [before, ...rest] = text.split(new RegExp(`^${'#'.repeat(level)} `, 'm'))

  return [before, rest.map((part) => ({ title: part.split('\n')[0], text: part.slice(part.indexOf('\n')) }))]
}

function decisions() {
  return readdirSync(new URL('adr/', docs)).filter((name) => name.endsWith('.md')).sort().map((name) => ({
    text: readFileSync(new URL('adr/' + name, docs), 'utf8').split('\n')[0].replace(/^# /, ''),
    link: '/adr/' + name.replace(/\.md$/, ''),
  }))
}

// navigation returns a group for each section of the index, with the subsections as groups inside it.
export function navigation() {
  const groups = parts(index, 2)[1].map(({ title, text }) => {
    const [before, inner] = parts(text, 3)

    return {
      text: title,
      collapsed: true,
      items: [...links(before), ...inner.map((part) => ({ text: part.title, collapsed: true, items: links(part.text) }))],
    }
  })

  return [...groups, { text: 'Decisions', collapsed: true, items: decisions() }]
}

// sections returns the sections of the index with their first pages, for the top of each page.
export function sections() {
  const pages = (items) => items.flatMap((item) => item.items ? pages(item.items) : [item.link])
  const first = (items) => pages(items).find((link) => link.startsWith('/'))

  return navigation().map(({ text, items }) => ({ text, link: first(items) })).filter(({ text }) => text !== 'Decisions')
}
