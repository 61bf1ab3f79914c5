import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Where `cargo xtask wasm` puts the package. */
const PACKAGE = process.env.PLUMBLINE_PACKAGE ?? here('../target/npm/plumbline-rl/index.js');

/** Write the service worker with the list of all files of this build, so that the page works without a network. */
function serviceWorker(): Plugin {
  return {
    name: 'service-worker',
    apply: 'build',
    generateBundle: {
      order: 'post',
      handler(_, bundle) {
        const hash = createHash('sha256');
        const files = Object.values(bundle).map((file) => {
          hash.update(file.fileName).update(file.type === 'chunk' ? file.code : file.source);
          return `./${file.fileName}`;
        });
        const kept = ['./', './icon.svg', './manifest.webmanifest', ...files.filter((file) => file !== './index.html')];
        const source = readFileSync(here('worker/worker.js'), 'utf8')
          .replace('"__VERSION__"', JSON.stringify(hash.digest('hex').slice(0, 16)))
          .replace('"__FILES__"', JSON.stringify(kept));
        this.emitFile({ type: 'asset', fileName: 'worker.js', source });
      },
    },
  };
}

/** KaTeX's style sheet names each font in three formats; every browser that runs WebAssembly reads the first. */
function onlyModernFonts(): Plugin {
  return {
    name: 'only-modern-fonts',
    enforce: 'pre',
    transform(code, id) {
      if (!id.includes('katex.min.css')) return null;
      return code.replaceAll(/,url\([^)]*\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)/g, '');
    },
  };
}

export default defineConfig({
  base: './',
  plugins: [onlyModernFonts(), serviceWorker()],
  resolve: {
    alias: [
      { find: /^plumbline-rl$/, replacement: PACKAGE },
      { find: /^plumbline-rl\/identify$/, replacement: PACKAGE.replace(/index\.js$/, 'identify.js') },
    ],
  },
  worker: { format: 'es' },
  server: { fs: { allow: [here('..'), PACKAGE.replace(/[^/]*$/, '')] } },
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    outDir: process.env.PLUMBLINE_SITE ?? '../target/site',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { output: { manualChunks: { katex: ['katex'] } } },
  },
  test: { environment: 'node', testTimeout: 180_000 },
} as never);
