"""Pack an extension's folder into a .vsix, the file that VSCode installs an extension from.

A .vsix is a zip: the files in extension/, a manifest, and the content types. The same files give the same
bytes. Standard library only.

Source: `vsce package` (@vscode/vsce 3), for what the manifest must contain.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

_DATE = (2026, 1, 1, 0, 0, 0)
_KINDS = {".json": "application/json", ".js": "application/javascript", ".vsixmanifest": "text/xml"}
_MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id={name} Version={version} Publisher={publisher} />
    <DisplayName>{title}</DisplayName>
    <Description xml:space="preserve">{description}</Description>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine} />
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code" /></Installation>
  <Dependencies />
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true" />
  </Assets>
</PackageManifest>
"""


def packed(folder: Path) -> bytes:
    """The .vsix of the extension in a folder, whose package.json names it."""
    files = {f"extension/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
    package = json.loads(files["extension/package.json"])
    parts = {"extension.vsixmanifest": _manifest(package), "[Content_Types].xml": _content_types()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (parts | files).items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content)
    return buffer.getvalue()


def _manifest(package: dict[str, dict[str, str]]) -> bytes:
    attributes = {name: quoteattr(str(package[name])) for name in ("name", "version", "publisher")}
    texts = {"title": escape(str(package["displayName"])), "description": escape(str(package["description"]))}
    engine = quoteattr(package["engines"]["vscode"])
    return _MANIFEST.format(**attributes, **texts, engine=engine).encode()


def _content_types() -> bytes:
    kinds = "".join(f'<Default Extension="{end}" ContentType="{kind}"/>' for end, kind in _KINDS.items())
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{types}">{kinds}</Types>'.encode()
