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
        // What screens share is one file; what draws is two more; a screen is another.
        advancedChunks: {
          groups: [
            { name: "shared", test: /node_modules\/preact|src\/(ui\/(?!chart)|api|i18n\/(index|format|en)\.ts|roles|router|store)/, priority: 3 },
            { name: "form", test: /src\/flow\/(dataform|schemaform|expression|fields|sample|lists)\./, priority: 2 },
            { name: "chart", test: /node_modules\/uplot/, priority: 2 },
            { name: "graph", test: /src\/flow\/|node_modules\/(@xyflow|@dagrejs)/, priority: 1 },
          ],
        },
      },
    },
  },
  server: {
    // A server that runs beside it answers what is not a page.
    proxy: { "/api": process.env.FOREBAY_URL ?? "http://127.0.0.1:8080" },
  },
});
