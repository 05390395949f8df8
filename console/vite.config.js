import { defineConfig } from "vite";

// Names are stable, so that a change of one screen changes one file here; the server
// puts a hash of them all into their addresses.
export default defineConfig({
  base: "./",
  resolve: {
    alias: [
      { find: "react/jsx-runtime", replacement: "preact/jsx-runtime" },
      { find: "react-dom/client", replacement: "preact/compat/client" },
      { find: "react-dom", replacement: "preact/compat" },
      { find: "react", replacement: "preact/compat" },
    ],
  },
  build: {
    outDir: process.env.OUT_DIR ?? "dist",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: true,
    reportCompressedSize: true,
    rollupOptions: {
      output: {
        entryFileNames: "assets/app.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
        // What screens share is one file; a screen is another.
        manualChunks: (id) => (/node_modules\/uplot/.test(id) ? "chart" : /node_modules\/preact|src\/(ui\/(?!chart)|api|i18n\/(index|format|en)|roles|router|store)/.test(id) ? "shared" : undefined),
      },
    },
  },
  server: {
    // A server that runs beside it answers what is not a page.
    proxy: { "/api": process.env.FOREBAY_URL ?? "http://127.0.0.1:8080" },
  },
});
