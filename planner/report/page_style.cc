#include "planner/report/page_style.h"

namespace millrace::planner::report {

// Texts have a contrast of at least 4.5 to their ground and areas of at least
// 3, in both schemes. Areas also differ in lightness, for those who see no
// hues.
const char kPageStyle[] = R"css(
:root{color-scheme:light dark;--ground:#fff;--raised:#f6f7f9;--text:#1b1f24;
--quiet:#59626d;--line:#d5dae0;--yes:#1a7f42;--no:#b3261e;--weights:#1f5fa8;
--ends:#7d5bbf;--scratch:#6d7784;--kv:#c25e00;--reserve:#9aa3ad;--free:#fff;
--link:#0f766e;--bind:#b3261e;--other:#7b8794}
@media screen and (prefers-color-scheme:dark){:root{--ground:#14171b;
--raised:#1d2127;--text:#e4e7eb;--quiet:#a3adb8;--line:#363d46;--yes:#5fd08a;
--no:#ff8a80;--weights:#6ba6ea;--ends:#b89cf2;--scratch:#8b95a1;--kv:#f2a04e;
--reserve:#66707b;--free:#14171b;--link:#4fc4b8;--bind:#ff8a80;--other:#7f8a96}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:2rem 1.5rem 4rem;
background:var(--ground);color:var(--text);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.55rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2.25rem 0 .5rem;padding-bottom:.2rem;
border-bottom:1px solid var(--line)}
p{margin:.4rem 0}
.quiet,figcaption p,caption{color:var(--quiet)}
.verdict{margin:1rem 0;padding:.75rem 1rem;background:var(--raised);
border-left:4px solid var(--yes);overflow-wrap:anywhere}
.verdict.no{border-left-color:var(--no)}
.verdict b{color:var(--yes)}.verdict.no b{color:var(--no)}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));
gap:.9rem 1.25rem;margin:1rem 0}
.facts dt{color:var(--quiet);font-size:.85rem}
.facts dd{margin:0;font-size:1.2rem;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem;
font-variant-numeric:tabular-nums}
table.narrow{width:auto;min-width:22rem}
caption{text-align:left;padding:.2rem 0 .4rem;font-size:.9rem}
th,td{padding:.28rem .6rem;text-align:right;border-bottom:1px solid var(--line);
vertical-align:top}
td{white-space:nowrap}
thead th{color:var(--quiet);font-weight:600;vertical-align:bottom}
.left{text-align:left}
td.left,th.left,td.wrap{white-space:normal;overflow-wrap:anywhere}
th.left,td.left{min-width:8rem}td.wrap{min-width:7.5rem}
tbody th{font-weight:400}
tr.binds td,tr.binds th{background:var(--raised);font-weight:600}
.mark{font-size:.68em;color:var(--quiet);margin-left:.15em;font-weight:400}
figure{margin:1rem 0 1.5rem}
figcaption{margin-bottom:.5rem}
figcaption p{margin:.1rem 0;font-size:.9rem}
.key{display:inline-block;margin-right:1.1rem;font-size:.88rem}
.key i{display:inline-block;width:.85em;height:.85em;margin-right:.4em;
vertical-align:-.08em;border:1px solid transparent;
print-color-adjust:exact;-webkit-print-color-adjust:exact}
.key i.weights{background:var(--weights)}.key i.ends{background:var(--ends)}
.key i.scratch{background:var(--scratch)}.key i.kv{background:var(--kv)}
.key i.reserve{background:var(--reserve)}.key i.link{background:var(--link)}
.key i.free{background:var(--free);border-color:var(--scratch)}
.key i.bind{background:var(--bind)}.key i.other{background:var(--other)}
svg{display:block;width:100%;height:auto;font:12px system-ui,sans-serif}
svg text{fill:var(--text)}
svg .tick,svg .name{fill:var(--quiet)}
svg .end{text-anchor:end}svg .mid{text-anchor:middle}
svg .halo{paint-order:stroke;stroke:var(--ground);stroke-width:4px}
svg .grid{stroke:var(--line)}
svg .axis{stroke:var(--quiet);fill:none}
svg .limit{stroke:var(--bind);stroke-dasharray:5 4}
rect.weights{fill:var(--weights)}rect.ends{fill:var(--ends)}
rect.scratch{fill:var(--scratch)}rect.kv{fill:var(--kv)}
rect.reserve{fill:var(--reserve)}rect.link{fill:var(--link)}
rect.bind{fill:var(--bind)}
rect.free{fill:var(--free);stroke:var(--scratch);stroke-width:.75}
polyline{fill:none;stroke-width:2.5;stroke-linejoin:round}
polyline.whole{stroke:var(--weights)}
polyline.other{stroke:var(--other);stroke-width:1.25}
svg .spot{fill:var(--kv);stroke:var(--ground);stroke-width:1.5}
@media print{body{max-width:none;padding:0;font-size:10pt}
h2{break-after:avoid}.verdict,figure.short,tr,.facts{break-inside:avoid}
.scroll{overflow:visible}.scroll table{font-size:7pt}
.scroll th,.scroll td{padding:.15rem .25rem}
.scroll .left,.scroll td.wrap{min-width:3.5rem}thead{display:table-header-group}
@page{margin:15mm}}
)css";

}  // namespace millrace::planner::report
