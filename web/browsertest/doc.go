// Package browsertest drives the live page in a real browser: the real program trains, Chromium
// looks on, and drive.mjs clicks and types as a person would and checks the results. It is a
// package of its own since it needs the whole program and tools that no other test needs.
//
// It runs with FSPDA_LONG=1, where it finds node, Chromium, and the npm packages playwright-core
// and axe-core in FSPDA_NODE_MODULES (a folder node_modules, made by npm install playwright-core
// axe-core); else it names the missing tool and is skipped. FSPDA_CHROMIUM names another browser
// than the first chromium of the path. With FSPDA_KEEP it leaves its screenshots in that folder:
// those of docs/images, live*.png and report.png, are made so, with their colours then brought down
// to 256.
package browsertest
