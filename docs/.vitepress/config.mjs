// The site of the documentation: `make docs` builds it. docs/README.md is its start page and its navigation.
import { checkSite } from './check.mjs'
import { inRepository, navigation, sections } from './navigation.mjs'

// The generator is in .bin/site, which is not a parent folder of the pages, so imports of the compiled pages need its path.
const modules = new URL('../../.bin/site/node_modules/', import.meta.url).pathname

// slug returns the anchor that GitHub generates for a heading, so that a link works on GitHub and on the site.
function slug(heading) {
  return heading.replace(/[^\p{L}\p{N}_\- ]/gu, '').toLowerCase().replaceAll(' ', '-')
}

export default {
  title: 'Environment broker',
  description: 'Kubernetes clusters from a marketplace: an Open Service Broker for Gardener',
  base: process.env.DOCS_BASE || '/',
  outDir: '../dist/docs',
  cacheDir: '../.bin/site/cache',
  rewrites: { 'README.md': 'index.md' },
  vite: {
    build: { chunkSizeWarningLimit: 5000 }, // the search index is one file
    resolve: {
      alias: [
        { find: /^vue\/server-renderer$/, replacement: modules + 'vue/server-renderer/index.mjs' },
        { find: /^vue$/, replacement: modules + 'vue/dist/vue.runtime.esm-bundler.js' },
      ],
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: sections(),
    sidebar: navigation(),
    socialLinks: [{ icon: 'github', link: inRepository('') }],
  },
  markdown: {
    anchor: { slugify: slug },
    config(md) {
      // Links that leave the folder docs lead to the repository.
      md.core.ruler.push('links-to-the-repository', (state) => {
        const page = state.env.relativePath === 'index.md' ? 'README.md' : state.env.relativePath

        for (const token of state.tokens.flatMap((block) => block.children ?? [])) {
          const target = token.type === 'link_open' ? inRepository(token.attrGet('href'), page) : null
          if (target) token.attrSet('href', target)
        }
      })
    },
  },
  buildEnd: (site) => checkSite(site.outDir, site.site.base),
}
