/* What makes a page of schedules a lesson: sliders through time and through numbers of microbatches, and the
 * chain of passes that held up a box or a gap.
 * The numbers below follow the drawing that is shown (schedule_html.c: class numbers).
 * It reads what the drawing says of itself (schedule_svg.c: id, data-s, data-e, data-by, data-beyond, data-next) and
 * loads nothing. Without it the page is the same, less the sliders. */
#include "report/schedule_script.h"

static const char style[] =
    "<style>.controls{position:sticky;top:0;z-index:1;background:var(--paper);padding:.2rem 0}.steps{padding:.2rem 0;"
    "display:flex;flex-wrap:wrap;gap:.3rem .8rem;align-items:center}.steps[hidden]{display:none}.steps input{flex:1 1 "
    "12rem}.steps output{min-width:5rem}#says{min-height:3rem}"
    ".lesson g[data-s],.lesson g.gap{cursor:pointer}.lesson .later{opacity:.1}.lesson.why g[data-s]:not(.held):not("
    ".picked){opacity:.25}.lesson .picked rect{stroke:var(--ink);stroke-width:4}.lesson .held "
    "rect{stroke:var(--ink);stroke-width:2.5}.over{pointer-events:none}.over path{stroke:var(--ink);stroke-width:2.5;"
    "fill:none}.over .now{stroke:var(--bad);stroke-dasharray:6 4}.over circle{fill:var(--ink)}"
    "@media screen and (max-width:40rem){.lesson svg{min-width:40rem}}@media "
    "print{.controls,#says{display:none}}</style>\n";

static const char controls[] =
    "<div class=\"controls\">\n<div class=\"steps\" hidden><button type=\"button\" id=\"back\" aria-label=\"one step "
    "back\">&#9664;</button>"
    "<button type=\"button\" id=\"play\">play</button>"
    "<button type=\"button\" id=\"on\" aria-label=\"one step on\">&#9654;</button>"
    "<input type=\"range\" id=\"when\" min=\"0\" aria-label=\"time\"><output id=\"clock\"></output></div>\n"
    "<div class=\"steps\" hidden><label for=\"many\">microbatches</label><input type=\"range\" id=\"many\" min=\"0\">"
    "<output id=\"number\"></output></div>\n</div>\n"
    "<p id=\"says\" aria-live=\"polite\" hidden></p>\n";

/* Time: what has not begun is faint, a line marks the moment. */
static const char time_script[] =
    "<script>(function(){\n"
    "var NS='http://www.w3.org/2000/svg',at=function(i){return document.getElementById(i)},\n"
    "list=function(e,q){return[].slice.call(e.querySelectorAll(q))},lessons=list(document,'.lesson'),\n"
    "when=at('when'),many=at('many'),says=at('says'),timer=null,picked=null,lesson,over,all,times,far;\n"
    "function load(n){if(timer)halt();[lessons,list(document,'.numbers')].forEach(function(a){\n"
    "a.forEach(function(l,i){l.hidden=i!=n})});lesson=lessons[n];\n"
    "over=lesson.querySelector('.over');all=list(lesson,'g[data-s]');times=[0];far=+over.dataset.end*1e-7;\n"
    "all.forEach(function(g){g.s=+g.dataset.s;g.e=+g.dataset.e;times.push(g.s,g.e)});\n"
    "times.sort(function(a,b){return a-b});\n"
    "times=times.filter(function(t,i){return i==0||t-times[i-1]>far});\n"
    "when.max=times.length-1;when.value=when.max;many.value=n;at('number').textContent=lesson.dataset.many;step()}\n"
    "many.max=lessons.length-1;many.addEventListener('input',function(){load(+many.value)});\n"
    "list(document,'.steps,#says').forEach(function(e){e.hidden=false});\n"
    "many.parentNode.hidden=lessons.length<2;\n"
    "function line(cls,d){var p=document.createElementNS(NS,'path');p.setAttribute('d',d);\n"
    "p.setAttribute('class',cls);over.appendChild(p);return p}\n"
    "function title(g){return g.querySelector('title').textContent}\n"
    "function text(t){return String(+t.toPrecision(6))}\n"
    "function step(){var t=times[when.value],last=+when.value==+when.max,rows={},out=[];forget();\n"
    "all.forEach(function(g){g.classList.toggle('later',g.s>t+far);var k=g.id.split('-');\n"
    "if(g.s<=t+far&&g.e>t+far){(rows[k[0]]=rows[k[0]]||[]).push(title(g).replace(/, [^,]*$/,''))}});\n"
    "at('clock').textContent='time '+text(t);\n"
    "if(last){says.textContent='Click a box or a gap: what held it up? Arrow keys move from box to box.'}else{\n"
    "var x=+over.dataset.x+t*over.dataset.unit;line('now','M'+x+' 0V'+over.dataset.top);\n"
    "lesson.scrollLeft=lesson.scrollWidth*x/over.ownerSVGElement.viewBox.baseVal.width-lesson.clientWidth/2;\n"
    "for(var k in rows)out.push((lesson.dataset.names.split('\\n')[k.slice(1)-lesson.dataset.first]||'')+': "
    "'+rows[k].join('; '));\n"
    "says.textContent='From '+text(t)+' to '+text(times[+when.value+1])+', at work: '+(out.join('. ')||'nobody')}}\n"
    "function go(n){when.value=+when.value+n;step()}\n"
    "function halt(){clearInterval(timer);timer=null;at('play').textContent='play'}\n"
    "when.addEventListener('input',step);\n"
    "at('back').onclick=function(){halt();go(-1)};at('on').onclick=function(){halt();go(1)};\n"
    "at('play').onclick=function(){if(timer)return halt();if(+when.value==+when.max)when.value=0;step();\n"
    "at('play').textContent='stop';timer=setInterval(function(){go(1);if(+when.value==+when.max)halt()},600)};\n";

/* Causes: from a box or a gap back along what held each up, up to one that began at once. */
static const char cause_script[] =
    "function forget(){picked=null;lesson.classList.remove('why');over.textContent='';\n"
    "list(lesson,'.held,.picked').forEach(function(g){g.classList.remove('held','picked')})}\n"
    "function edge(g,end){var b=g.querySelector('rect').getBBox();return[b.x+(end?b.width:0),b.y+b.height/2]}\n"
    "function arrow(a,b){var p=edge(a,true),q=edge(b,false);if(Math.abs(p[1]-q[1])<1)return;\n"
    "line('','M'+p+'L'+q);var c=document.createElementNS(NS,'circle');c.setAttribute('cx',q[0]);\n"
    "c.setAttribute('cy',q[1]);c.setAttribute('r',4);over.appendChild(c)}\n"
    "function show(g){if(timer)halt();when.value=when.max;step();picked=g;g.classList.add('picked');\n"
    "lesson.classList.add('why');\n"
    "var "
    "own=g.dataset.s!=null,by=at(g.dataset.by),to=g.dataset.next?at(g.dataset.next):own?g:null,n=0,first=by,end=g;\n"
    "if(to&&to!=g)to.classList.add('held');\n"
    "for(;by;end=to=by,by=at(by.dataset.by)){by.classList.add('held');if(to)arrow(by,to);n++}\n"
    "var beyond=end.dataset.beyond;says.textContent=title(g)+'. '+(own&&first?'It began when this ended: "
    "'+title(first)+'. "
    "':\n"
    "own&&beyond?'It began when '+beyond+' ended, which is not drawn. ':own?'Nothing held it up. ':'')+(n>1?'The chain "
    "of '+n+' passes that had to run one after another before it '+\n"
    "'is outlined: to begin earlier, it needs a shorter one.':'')+\n"
    "(n&&beyond?' The chain goes on before '+title(end)+', with '+beyond+', which is not drawn.':'')}\n"
    "function find(e){return e.target.closest?e.target.closest('g[data-s],g.gap'):null}\n"
    "lessons.forEach(function(l){\n"
    "l.addEventListener('click',function(e){var g=find(e);if(g&&g!=picked)show(g);else step()});\n"
    "l.addEventListener('keydown',function(e){var d={ArrowLeft:[0,-1],ArrowRight:[0,1],ArrowUp:[-1,0],\n"
    "ArrowDown:[1,0]}[e.key];if(e.key=='Escape')step();if(!d)return;e.preventDefault();\n"
    "if(!picked||!picked.id)return show(all[0]);var k=picked.id.split('-'),g=null;\n"
    "if(d[1]){g=all[all.indexOf(picked)+d[1]];if(g&&g.id.indexOf(k[0]+'-'+k[1]+'-'))g=null}else{var "
    "y=all.filter(function(o){var q=o.id.split('-');\n"
    "return q[0]==k[0]&&+q[1]==+k[1]+d[0]});y.sort(function(a,b){return "
    "Math.abs(a.s-picked.s)-Math.abs(b.s-picked.s)});\n"
    "g=y[0]}if(g)show(g)})});\n"
    "load(lessons.findIndex(function(l){return!l.hidden}))})()</script>\n";

dts_status dts_schedule_lessons(const dts_schedule_set *sets, size_t set_count, size_t shown, size_t count,
                                dts_text *out) {
    dts_status status = DTS_OK;
    dts_text_add(out, style);
    dts_text_add(out, controls);
    for (size_t i = 0; i < set_count && status == DTS_OK; i++) {
        dts_text_printf(
            out,
            "<div class=\"wide lesson\"%s tabindex=\"0\" role=\"group\" aria-label=\"schedules of %d microbatches\" "
            "data-many=\"%d\" data-first=\"%zu\" data-names=\"",
            i == shown ? "" : " hidden", sets[i].microbatches, sets[i].microbatches, i * count);
        for (size_t k = 0; k < count; k++) {
            dts_html_element(k > 0 ? "&#10;" : "", sets[i].reports[k].schedule.name, "", out);
        }
        dts_text_add(out, "\">\n");
        status = dts_schedule_linked_svg(sets[i].reports, count, i * count, out);
        dts_text_add(out, "</div>\n");
    }
    dts_text_add(out, time_script);
    dts_text_add(out, cause_script);
    return status;
}
