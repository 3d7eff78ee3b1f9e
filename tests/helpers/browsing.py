"""Actions on a page in a browser, and texts found there."""

import base64
from pathlib import Path
from urllib.parse import unquote, urlparse

from vbterrier.report.page.content import script

NASTY = "</script><b>&\"'x"
WIDE, PHONE = (1200, 900), (360, 740)


def emulated(browser, size, scheme="light"):
    width, height = size
    shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


def texts(page, css):
    return page.execute_script("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", css)


def one(page, css):
    return page.find_element("css selector", css)


def column(page, place):
    return texts(page, f"#table tbody tr > :nth-child({place})")


def shown(value, digits=3):
    return f"{value:.{digits}f}".replace("-", "−")


def choose(page, select, text):
    one(page, f"{select}").find_element("xpath", f".//option[starts-with(., '{text}')]").click()


def press(page, *keys):
    from selenium.webdriver import ActionChains

    ActionChains(page).send_keys(*keys).perform()


def n_printed_pages(page):
    """Print the page and count its sheets. A page that is printed before its first frame is drawn may lack parts."""
    frames = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    page.execute_async_script(frames)
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF")
    return pdf.count(b"/Type /Page\n")


def opened(page):
    return page.execute_script("return document.getElementById('topic').open")


def with_data(address, data, path):
    """Write a page with other data than those of the page at an address, and return its address."""
    text = Path(unquote(urlparse(address).path)).read_text(encoding="utf-8")
    before, _, rest = text.partition('id="data">')
    path.write_text(f'{before}id="data">{script(data)}<{rest.partition("<")[2]}', encoding="utf-8")
    return path.as_uri()
